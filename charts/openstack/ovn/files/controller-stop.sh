#!/bin/bash
# With --restart the controller leaves flows and its record as they are: VMs keep their network until the next one runs.
ovn-appctl --timeout=5 -t /run/ovn/ovn-controller.ctl exit --restart
