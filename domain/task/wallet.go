package task

import (
	"strconv"
	"time"
)

// TellWallet is the task that tells wallets of changed passes.
const TellWallet = "wallet.tell.v1"

// TellWallets returns the task that tells wallets of what is due. At names the second,
// so that what becomes due while an earlier task ends is not left.
func TellWallets(at time.Time) Task {
	return Task{Name: TellWallet, Key: strconv.FormatInt(at.Unix(), 10), Queue: HookQueue, Payload: struct{}{}, Timeout: 10 * time.Minute}
}
