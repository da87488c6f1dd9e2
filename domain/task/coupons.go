package task

import (
	"fmt"
	"time"
)

// EndLock is the task that ends a coupon's lock when its time has come.
const EndLock = "coupon.timeout.v1"

// LockPayload is the payload of [EndLock].
type LockPayload struct {
	CouponID int64  `json:"coupon_id,string"`
	OrderID  string `json:"order_id"`
}

// LockEnd returns the timer of an order's lock. An order locks a coupon only
// once, so the timer's key is never used again.
func LockEnd(couponID int64, orderID string, until time.Time) Task {
	return Task{Name: EndLock, Key: fmt.Sprintf("%d:%s", couponID, orderID), Queue: TimerQueue,
		Payload: LockPayload{couponID, orderID}, At: until, Timeout: time.Minute}
}
