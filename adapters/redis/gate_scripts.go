package redis

import (
	_ "embed"

	goredis "github.com/redis/go-redis/v9"
)

// What the claim script says about a claim, or about the shelf.
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
	wordMissing   = "missing"
	wordSealed    = "sealed"
	// wordSoldOut is never said by a shelf, which knows only itself.
	wordSoldOut = "soldout"
)

//go:embed gate_claim.lua
var gateClaimSource string

//go:embed gate_move_begin.lua
var gateBeginSource string

//go:embed gate_move_take.lua
var gateTakeSource string

//go:embed gate_move_put.lua
var gatePutSource string

//go:embed gate_settle.lua
var gateSettleSource string

//go:embed gate_seal.lua
var gateSealSource string

//go:embed gate_reset.lua
var gateResetSource string

//go:embed gate_load.lua
var gateLoadSource string

//go:embed gate_tell.lua
var gateTellSource string

//go:embed gate_clock.lua
var gateClockSource string

//go:embed gate_open.lua
var gateOpenSource string

//go:embed gate_fill.lua
var gateFillSource string

type gateScripts struct {
	claim, begin, take, put, settle, seal, reset, load, tell, clock, open, fill *goredis.Script
}

func newGateScripts() gateScripts {
	return gateScripts{
		claim: goredis.NewScript(gateClaimSource), begin: goredis.NewScript(gateBeginSource), take: goredis.NewScript(gateTakeSource),
		put: goredis.NewScript(gatePutSource), settle: goredis.NewScript(gateSettleSource), seal: goredis.NewScript(gateSealSource),
		reset: goredis.NewScript(gateResetSource), load: goredis.NewScript(gateLoadSource), tell: goredis.NewScript(gateTellSource),
		clock: goredis.NewScript(gateClockSource), open: goredis.NewScript(gateOpenSource), fill: goredis.NewScript(gateFillSource),
	}
}
