package main

import (
	"testing"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
)

func TestGateKeepsTheContract(t *testing.T) {
	server := localstack.RedisServer(t)
	for name, shards := range map[string]int{"one shelf": 1, "four shelves": 4} {
		t.Run(name, func(t *testing.T) {
			claimtest.Run(t, func(t *testing.T) claimtest.Harness {
				r := newGateRig(t, server.URL(), shards)
				r.must(r.client.FlushDB(t.Context()).Err()) // the databases number their templates alike
				r.run()
				return r
			})
		})
	}
}
