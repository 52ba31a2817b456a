#!/bin/bash
# Does the broker's virtual machine answer?
export HOME=/var/lib/rabbitmq
exec /usr/lib/rabbitmq/bin/rabbitmqctl --quiet --timeout 20 ping
