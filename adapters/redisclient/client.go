// Package redisclient connects to Redis. Every adapter that uses Redis takes its clients from
// here, so that all adapters have the same address, the same time-out for connecting and the
// same way of following a cluster's topology.
package redisclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// dialTimeout bounds an attempt to connect: a node that no longer responds must not hold a
	// caller for longer. The next call tries again.
	dialTimeout = time.Second
	// topologyFor is the largest age of a cluster's topology while the client is
	// in use: a client is not notified when a replica takes over from a dead
	// primary. Reading it is one small command to one node.
	topologyFor = time.Second
)

// New returns an unconnected client with at least pool connections. address has
// the form redis://user:password@host:port/db (rediss: for TLS, unix: for a
// socket). Several addresses separated by commas mean a Redis Cluster; all but the
// first may be a bare host:port. Errors never repeat the address, which may
// hold a password.
func New(address string, pool int) (goredis.UniversalClient, error) {
	first, rest, cluster := strings.Cut(strings.TrimSpace(address), ",")
	if cluster {
		return newClusterClient(first, strings.Split(rest, ","), pool)
	}
	options, err := goredis.ParseURL(first)
	if err != nil {
		return nil, addressError(err)
	}
	options.ContextTimeoutEnabled = true
	options.PoolSize = max(options.PoolSize, pool)
	options.DialTimeout, options.DialerRetries = cmp.Or(options.DialTimeout, dialTimeout), 1
	return goredis.NewClient(options), nil
}

func newClusterClient(first string, rest []string, pool int) (goredis.UniversalClient, error) {
	seed, err := url.Parse(first)
	if err != nil {
		return nil, addressError(err)
	}
	query := seed.Query()
	for _, address := range rest {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			address = u.Host
		}
		query.Add("addr", strings.TrimSpace(address))
	}
	seed.RawQuery = query.Encode()
	options, err := goredis.ParseClusterURL(seed.String())
	if err != nil {
		return nil, addressError(err)
	}
	options.ContextTimeoutEnabled = true
	options.PoolSize = max(options.PoolSize, pool)
	options.DialTimeout, options.DialerRetries = cmp.Or(options.DialTimeout, dialTimeout), 1
	options.ClusterStateReloadInterval = topologyFor
	return goredis.NewClusterClient(options), nil
}

func addressError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("redis address: %w", err)
}
