//go:build tools

// Package etcd pins what the lab builds of etcd; go.mod says which version.
package etcd

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
