// Package redis keeps the state that several processes share for seconds or minutes: rate
// limits, the pace of a channel, and circuit breakers. No record exists in this package's keys
// alone; losing them costs fairness for a moment.
package redis

import (
	"context"

	"dropbell/adapters/redisclient"

	goredis "github.com/redis/go-redis/v9"
)

// Open returns a client for address, which has the form redis://user:password@host:port/db
// (rediss: for TLS, unix: for a socket). Several addresses separated by commas mean a Redis
// Cluster; all but the first may be a bare host:port. Open returns an error if address cannot be
// parsed. Open does not connect: an unavailable Redis must not keep a program from starting,
// since nothing depends on Redis alone.
func Open(address string) (goredis.UniversalClient, error) { return redisclient.New(address, 0) }

// Quiet turns the client library's log off; the errors of the library's calls contain the same
// information. Only package main calls Quiet.
func Quiet() { goredis.SetLogger(discardLogger{}) }

type discardLogger struct{}

// Printf is part of the library's logger.
func (discardLogger) Printf(context.Context, string, ...any) {}
