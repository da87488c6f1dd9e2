package task

import (
	"strconv"
	"time"
)

// TellWallet is the task that tells wallets of changed passes.
const TellWallet = "wallet.tell.v1"

// TellWallets returns the task that notifies wallets of due changes. At contains the
// second: changes that become due while an earlier task ends get a task of their own.
func TellWallets(at time.Time) Task {
	return Task{Name: TellWallet, Key: strconv.FormatInt(at.Unix(), 10), Queue: HookQueue, Payload: struct{}{}, Timeout: 10 * time.Minute}
}
