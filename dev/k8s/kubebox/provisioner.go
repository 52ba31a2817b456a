package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// provisionerName is what a StorageClass of the local cluster names as its provisioner.
const provisionerName = "kupenstack.io/local-folder"

// folders provisions `local` PersistentVolumes: one folder per volume, bound to the node the scheduler
// chose. `local` rather than `hostPath`, because the kubelet applies a pod's fsGroup to it: database pods
// run without root and could not write otherwise.
type folders struct{ root string }

func (f folders) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if o.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("the storage class must use volumeBindingMode WaitForFirstConsumer")
	}
	path := filepath.Join(f.root, o.PVName)
	if err := os.MkdirAll(path, 0o770); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make the volume's folder: %w", err)
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{o.SelectedNodeName},
				}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

func (f folders) Delete(_ context.Context, v *corev1.PersistentVolume) error {
	if v.Spec.Local == nil || filepath.Dir(v.Spec.Local.Path) != filepath.Clean(f.root) {
		return fmt.Errorf("volume %s is not a folder in %s", v.Name, f.root)
	}
	return os.RemoveAll(v.Spec.Local.Path)
}

// newProvisionerCommand serves the local cluster's StorageClass. The nodes of that cluster share one
// machine's file system, so a single process can make folders for all of them.
func newProvisionerCommand() *cobra.Command {
	var kubeconfig, root string
	cmd := &cobra.Command{
		Use:          "local-provisioner",
		Short:        "Provision PersistentVolumes as folders of this machine",
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(cfg)
			if err != nil {
				return err
			}
			ctx := klog.NewContext(cmd.Context(), klog.Background())
			pc := controller.NewProvisionController(ctx, client, provisionerName, folders{root}, controller.LeaderElection(false))
			pc.Run(ctx)
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	cmd.Flags().StringVar(&root, "root", "", "folder that holds the volumes")
	return cmd
}
