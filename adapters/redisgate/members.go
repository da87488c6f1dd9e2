package redisgate

import (
	"context"
	_ "embed"
	"time"

	"dropbell/adapters/redisclient"

	goredis "github.com/redis/go-redis/v9"
)

// keepersKey is the sorted set of processes that keep gates.
const keepersKey = "gate:keepers"

// MemberEvery is the interval at which a process reports that it keeps gates. After goneAfter
// without a report the other processes take over its gates.
const (
	MemberEvery = 500 * time.Millisecond
	goneAfter   = 4 * MemberEvery
)

//go:embed members.lua
var membersSource string

var membersScript = goredis.NewScript(membersSource)

// Members are the processes that keep gates. Their list is stored in Redis only: without Redis
// no gate can be kept. While two processes have different lists, both may look at a gate, which
// does no harm.
type Members struct {
	client goredis.UniversalClient
	name   string
}

// NewMembers returns the members as seen by the process called name. It uses client and does not
// close it.
func NewMembers(client goredis.UniversalClient, name string) Members { return Members{client, name} }

// Name is this process's.
func (m Members) Name() string { return m.name }

// Beat reports that this process keeps gates. It returns the names of all processes that do, and
// the run id of the Redis server that answered ("" = unknown): a new run id after a failover.
func (m Members) Beat(ctx context.Context) (names []string, server string, err error) {
	reply, err := membersScript.Run(ctx, m.client, []string{keepersKey}, m.name, goneAfter.Milliseconds()).StringSlice()
	if err != nil || len(reply) == 0 {
		return nil, "", redisclient.Unavailable("keepers of gates", err)
	}
	return reply[1:], reply[0], nil
}

// Leave says that this process keeps gates no more.
func (m Members) Leave(ctx context.Context) error {
	if err := m.client.ZRem(ctx, keepersKey, m.name).Err(); err != nil {
		return redisclient.Unavailable("keepers of gates", err)
	}
	return nil
}
