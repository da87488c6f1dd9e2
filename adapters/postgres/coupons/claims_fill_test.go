package coupons

import (
	"slices"
	"testing"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestCouponsFindTheirClaims: coupon ids may come in any order. Each id is filled
// into its claim, and holders that were left out get none.
func TestCouponsFindTheirClaims(t *testing.T) {
	for _, ids := range [][]int64{{1, 2, 3, 4}, {2, 4}, {4, 2}, {3, 1, 2}, {4}, nil} {
		group := make([]claim.Request, 4)
		d := newDecider(readSet{}, len(group))
		d.Templates[7] = template.Template{ID: 7, Stored: template.Published, Spec: template.Spec{Stock: 10, PerUserLimit: 1, Obtain: template.ByClaim}}
		for i := range group {
			group[i] = claim.Request{ID: claim.ID(i + 1), TemplateID: 7, UserID: user.ID(i + 1), Origin: claim.ByGrant}
			if v := d.Decide(group[i]); v.Err != nil {
				t.Fatal(v.Err)
			}
		}
		f := newFastGroup(d, group)
		for _, id := range ids {
			f.claims, f.coupons = append(f.claims, id), append(f.coupons, 100+id)
		}
		if n := f.fill(); n != len(ids) {
			t.Errorf("%v: %d were issued", ids, n)
		}
		for _, n := range d.Fresh() {
			want := int64(0)
			if slices.Contains(ids, int64(n.Claim.ID)) {
				want = 100 + int64(n.Claim.ID)
			}
			if n.Claim.CouponID != want {
				t.Errorf("%v: claim %d has coupon %d, want %d", ids, n.Claim.ID, n.Claim.CouponID, want)
			}
		}
	}
}
