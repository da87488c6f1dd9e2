package coupons

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAppendClaimAgreesWithJSON(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[ -~]{0,20}`), rapid.StringMatching(`[<>&"\\\x{2028}\x{4e00}-\x{4e10}]{0,5}`))
	number := rapid.StringMatching(`[1-9][0-9]{0,18}`)
	rapid.Check(t, func(t *rapid.T) {
		c := Claim{ID: number.Draw(t, "id"), TemplateID: number.Draw(t, "template"), State: text.Draw(t, "state"), Reason: text.Draw(t, "reason"),
			CouponID: rapid.OneOf(rapid.Just(""), number).Draw(t, "coupon"), At: time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, "at")).UTC()}
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendClaim(nil, &c)); got != string(want) {
			t.Fatalf("%s\nis not\n%s", got, want)
		}
	})
}
