// clients does what the OpenStack provider of OpenTofu and Cluster API do, with the library that they are made with, against the
// cloud that OS_AUTH_URL and its like name: an administrator makes a project with a user in it, who makes an application
// credential, with which an image is made. Whatever is not as the library expects ends it with an error.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
)

const password = "secret-of-the-user"

var region = gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	options, err := openstack.AuthOptionsFromEnv()
	if err != nil {
		return err
	}
	provider, err := openstack.AuthenticatedClient(ctx, options)
	if err != nil {
		return fmt.Errorf("log in as administrator: %w", err)
	}
	admin, err := openstack.NewIdentityV3(provider, region)
	if err != nil {
		return err
	}
	project, user, err := tenant(ctx, admin)
	if err != nil {
		return err
	}
	if err := work(ctx, options.IdentityEndpoint, project, user); err != nil {
		return err
	}
	return leave(ctx, admin, project, user)
}

// tenant makes a project, a user, and the user a member of it.
func tenant(ctx context.Context, admin *gophercloud.ServiceClient) (*projects.Project, *users.User, error) {
	project, err := projects.Create(ctx, admin, projects.CreateOpts{Name: "clients", DomainID: "default"}).Extract()
	if err != nil {
		return nil, nil, fmt.Errorf("create a project: %w", err)
	}
	user, err := users.Create(ctx, admin, users.CreateOpts{
		Name: "clients", DomainID: "default", DefaultProjectID: project.ID, Password: password,
	}).Extract()
	if err != nil {
		return nil, nil, fmt.Errorf("create a user: %w", err)
	}
	pages, err := roles.List(admin, roles.ListOpts{Name: "member"}).AllPages(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list roles: %w", err)
	}
	found, err := roles.ExtractRoles(pages)
	if err != nil || len(found) != 1 {
		return nil, nil, fmt.Errorf("roles named member: %v, %v", found, err)
	}
	grant := roles.AssignOpts{UserID: user.ID, ProjectID: project.ID}
	if err := roles.Assign(ctx, admin, found[0].ID, grant).ExtractErr(); err != nil {
		return nil, nil, fmt.Errorf("assign a role: %w", err)
	}
	pages, err = roles.ListAssignments(admin, roles.ListAssignmentsOpts{UserID: user.ID}).AllPages(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list assignments: %w", err)
	}
	assigned, err := roles.ExtractRoleAssignments(pages)
	if err != nil || len(assigned) != 1 || assigned[0].Scope.Project.ID != project.ID {
		return nil, nil, fmt.Errorf("assignments: %v, %v", assigned, err)
	}
	return project, user, nil
}

// work does what the user does, by an application credential.
func work(ctx context.Context, url string, project *projects.Project, user *users.User) error {
	provider, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: url, UserID: user.ID, Password: password, TenantID: project.ID,
	})
	if err != nil {
		return fmt.Errorf("log in as user: %w", err)
	}
	identity, err := openstack.NewIdentityV3(provider, region)
	if err != nil {
		return err
	}
	credential, err := applicationcredentials.Create(ctx, identity, user.ID,
		applicationcredentials.CreateOpts{Name: "clients"}).Extract()
	if err != nil {
		return fmt.Errorf("create an application credential: %w", err)
	}
	provider, err = openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: url, ApplicationCredentialID: credential.ID, ApplicationCredentialSecret: credential.Secret,
		AllowReauth: true,
	})
	if err != nil {
		return fmt.Errorf("log in with an application credential: %w", err)
	}
	if identity, err = openstack.NewIdentityV3(provider, region); err != nil {
		return err
	}
	catalog, err := tokens.Get(ctx, identity, provider.Token()).ExtractServiceCatalog()
	if err != nil || len(catalog.Entries) < 2 {
		return fmt.Errorf("catalogue: %v, %v", catalog, err)
	}
	image, err := openstack.NewImageV2(provider, region)
	if err != nil {
		return fmt.Errorf("find the image service: %w", err)
	}
	// a token that has ended is replaced
	if err := tokens.Revoke(ctx, identity, provider.Token()).Err; err != nil {
		return fmt.Errorf("revoke a token: %w", err)
	}
	return anImage(ctx, image)
}

// anImage makes an image, changes, reads and deletes it.
func anImage(ctx context.Context, service *gophercloud.ServiceClient) error {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	image, err := images.Create(ctx, service, images.CreateOpts{
		Name: "clients", DiskFormat: "raw", ContainerFormat: "bare", MinDisk: 1, Properties: map[string]string{"os_distro": "debian"},
	}).Extract()
	if err != nil || image.Status != images.ImageStatusQueued {
		return fmt.Errorf("create an image: %v, %v", image, err)
	}
	if err := imagedata.Upload(ctx, service, image.ID, bytes.NewReader(data)).ExtractErr(); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	image, err = images.Update(ctx, service, image.ID, images.UpdateOpts{
		images.ReplaceImageName{NewName: "renamed"},
		images.ReplaceImageTags{NewTags: []string{"one", "two"}},
		images.UpdateImageProperty{Op: images.AddOp, Name: "hw_rng_model", Value: "virtio"},
	}).Extract()
	if err != nil || image.Name != "renamed" || len(image.Tags) != 2 || image.Properties["hw_rng_model"] != "virtio" {
		return fmt.Errorf("update: %v, %v", image, err)
	}
	image, err = images.Get(ctx, service, image.ID).Extract()
	if err != nil || image.Status != images.ImageStatusActive || image.SizeBytes != int64(len(data)) {
		return fmt.Errorf("an active image of %d bytes: %v, %v", len(data), image, err)
	}
	pages, err := images.List(service, images.ListOpts{Name: "renamed", Limit: 1}).AllPages(ctx)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	if found, err := images.ExtractImages(pages); err != nil || len(found) != 1 || found[0].ID != image.ID {
		return fmt.Errorf("images of that name: %v, %v", found, err)
	}
	reader, err := imagedata.Download(ctx, service, image.ID).Extract()
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	defer reader.Close()
	if read, err := io.ReadAll(reader); err != nil || !bytes.Equal(read, data) {
		return fmt.Errorf("what came back is not what was sent: %d bytes, %w", len(read), err)
	}
	if err := images.Delete(ctx, service, image.ID).ExtractErr(); err != nil {
		return fmt.Errorf("delete an image: %w", err)
	}
	if _, err = images.Get(ctx, service, image.ID).Extract(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return fmt.Errorf("a deleted image is not missing: %w", err)
	}
	return nil
}

// leave deletes what tenant made.
func leave(ctx context.Context, admin *gophercloud.ServiceClient, project *projects.Project, user *users.User) error {
	if err := users.Delete(ctx, admin, user.ID).ExtractErr(); err != nil {
		return fmt.Errorf("delete the user: %w", err)
	}
	if err := projects.Delete(ctx, admin, project.ID).ExtractErr(); err != nil {
		return fmt.Errorf("delete the project: %w", err)
	}
	if _, err := projects.Get(ctx, admin, project.ID).Extract(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return fmt.Errorf("a deleted project is not missing: %w", err)
	}
	return nil
}
