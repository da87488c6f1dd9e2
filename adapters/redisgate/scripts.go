package redisgate

import (
	_ "embed"
	"strconv"

	goredis "github.com/redis/go-redis/v9"
)

// The answers of the claim script about a claim, or about the shard.
const (
	wordOK        = "ok"
	wordDraft     = "draft"
	wordCancelled = "cancelled"
	wordOtherWay  = "otherway"
	wordPaused    = "paused"
	wordEnded     = "ended"
	wordEarly     = "early"
	wordDry       = "dry"
	wordLimit     = "limit"
	wordDryLimit  = "drylimit"
	// wordHousehold and wordDryHousehold are wordLimit and wordDryLimit of a household.
	wordHousehold    = "household"
	wordDryHousehold = "dryhousehold"
	// wordAsk says of a claim that the shard is being filled and does not know its user.
	wordAsk     = "ask"
	wordMissing = "missing"
	// wordMoved says of a shard that it is on a server whose clock is not known.
	wordMoved  = "moved"
	wordSealed = "sealed"
	// wordFirst says of a shard that claims wait to be written since this call.
	wordFirst = "first"
	// wordSoldOut is never said by a shard, which knows only itself.
	wordSoldOut = "soldout"
)

//go:embed claim.lua
var gateClaimSource string

//go:embed move_begin.lua
var gateBeginSource string

//go:embed move_take.lua
var gateTakeSource string

//go:embed move_put.lua
var gatePutSource string

//go:embed settle.lua
var gateSettleSource string

//go:embed fence.lua
var gateSealSource string

//go:embed reset.lua
var gateResetSource string

//go:embed load.lua
var gateLoadSource string

//go:embed set_terms.lua
var gateTellSource string

//go:embed clock.lua
var gateClockSource string

//go:embed look.lua
var gateLookSource string

//go:embed detach.lua
var gateDetachSource string

//go:embed resume.lua
var gateResumeSource string

//go:embed open.lua
var gateOpenSource string

//go:embed fill.lua
var gateFillSource string

type scripts struct {
	claim, begin, take, put, settle, seal, reset, load, clock, tell, look, open, fill, detach, resume *goredis.Script
}

func newScripts() scripts {
	return scripts{
		claim: goredis.NewScript(gateClaimSource), begin: goredis.NewScript(gateBeginSource), take: goredis.NewScript(gateTakeSource),
		put: goredis.NewScript(gatePutSource), settle: goredis.NewScript(gateSettleSource), seal: goredis.NewScript(gateSealSource),
		reset: goredis.NewScript(gateResetSource), load: goredis.NewScript(gateLoadSource), tell: goredis.NewScript(gateTellSource),
		clock: goredis.NewScript(gateClockSource), look: goredis.NewScript(gateLookSource), open: goredis.NewScript(gateOpenSource), fill: goredis.NewScript(gateFillSource),
		detach: goredis.NewScript(gateDetachSource), resume: goredis.NewScript(gateResumeSource),
	}
}

// shardKeys are the Redis keys of one shard.
type shardKeys struct{ shard, users, keys, claims, stream, gone, came, pace string }

// all returns every key of the shard.
func (k shardKeys) all() []string {
	return []string{k.shard, k.users, k.keys, k.claims, k.stream, k.gone, k.came, k.pace}
}

func keysOf(templateID int64, shard int) shardKeys {
	tag := "gate:{" + strconv.FormatInt(templateID, 10) + ":" + strconv.Itoa(shard) + "}"
	return shardKeys{tag, tag + ":users", tag + ":keys", tag + ":claims", tag + ":stream", tag + ":gone", tag + ":came", tag + ":pace"}
}
