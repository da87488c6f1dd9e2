package coupons_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// behindGate opens a drop behind a gate of two shards, epoch 1.
func (h *claimFixture) behindGate(quantity int64, limit int) template.Template {
	h.Helper()
	drop := h.Open(quantity, limit, nil)
	h.Exec(`insert into gates (template_id, shards, epoch, state, reason, lease_until) values ($1, 2, 1, 'standing', 'test', now())`, drop.ID)
	h.Exec(`insert into gate_shards (template_id, shard, epoch, allot) select $1, s, 1, $2 from generate_series(0, 1) s`, drop.ID, quantity)
	return drop
}

// accepted is a claim that a shard has let in.
func accepted(id claim.ID, by user.ID, key string) gate.Accepted {
	return gate.Accepted{ID: id, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, key)}
}

func gateEntry(epoch int64, claims ...gate.Accepted) gate.Group {
	return gate.Group{Entry: "1-1", Epoch: epoch, At: pgtest.Clock().Add(-3 * time.Second).Truncate(time.Millisecond), Claims: claims}
}

// reasons returns for each claim "" if it was issued, otherwise the reason.
func reasons(verdicts []gate.Settlement, ids ...claim.ID) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(verdicts, func(v gate.Settlement) bool { return v.ID == id })
		switch {
		case at < 0:
			list[i] = "no verdict"
		case verdicts[at].Issued && verdicts[at].CouponID > 0:
		case verdicts[at].Issued:
			list[i] = "no coupon"
		default:
			list[i] = verdicts[at].Reason
		}
	}
	return list
}

// TestAPageOfManyKinds writes claims of users with and without coupons; some
// claims are written for the second time.
func TestAPageOfManyKinds(t *testing.T) {
	h := newClaimFixture(t, 1)
	book := couponsdb.NewGateRecorder(h.DB)
	drop := h.behindGate(100, 2)
	first := gateEntry(1, accepted(1, 1, "a"), accepted(2, 2, "a"))
	verdicts, err := book.Write(t.Context(), drop.ID, 0, []gate.Group{first})
	h.Must(err)
	if got := reasons(verdicts, 1, 2); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("the first page: %q", got)
	}
	page := []gate.Group{first, gateEntry(1, accepted(3, 1, "b"), accepted(4, 3, "a"), accepted(5, 1, "c"), accepted(6, 4, "a"), accepted(7, 4, "b"), accepted(8, 4, "c"))}
	for range 2 { // as after the death of a writer, too
		verdicts, err = book.Write(t.Context(), drop.ID, 0, page)
		h.Must(err)
		if got := reasons(verdicts, 1, 2, 3, 4, 5, 6, 7, 8); !slices.Equal(got, []string{"", "", "", "", "limit_reached", "", "", "limit_reached"}) {
			t.Errorf("the page: %q", got)
		}
	}
	if settled, refused := h.shard(drop.ID, 0); settled != 8 || refused != 2 {
		t.Errorf("%d settled, %d refused, want 8 and 2", settled, refused)
	}
	if total, issued := h.Balance(drop.ID); total != 100 || issued != 6 {
		t.Errorf("%d of %d issued, want 6", issued, total)
	}
	if n := h.Number(`select count(*) from coupons where template_id = $1 and issued_at > now() - interval '2 seconds'`, drop.ID); n != 0 {
		t.Errorf("%d coupons say they were issued when they were written", n)
	}
}

func (h *claimFixture) shard(drop int64, shard int) (settled, refused int64) {
	h.Helper()
	h.Must(h.SQL.QueryRow(h.Context(), `select settled, refused from gate_shards where template_id = $1 and shard = $2`, drop, shard).Scan(&settled, &refused))
	return settled, refused
}

// TestWhatWasRefusedStaysRefused: a claim was refused, and its writer died, so
// the entry is still in the stream. Although stock was added since, the claim
// stays refused.
func TestWhatWasRefusedStaysRefused(t *testing.T) {
	h := newClaimFixture(t, 1)
	book := couponsdb.NewGateRecorder(h.DB)
	drop := h.behindGate(1, 1)
	page := []gate.Group{gateEntry(1, accepted(11, 1, "a"), accepted(12, 2, "a"))}
	for range 2 {
		verdicts, err := book.Write(t.Context(), drop.ID, 1, page)
		h.Must(err)
		if got := reasons(verdicts, 11, 12); !slices.Equal(got, []string{"", "sold_out"}) {
			t.Errorf("%q", got)
		}
		h.Exec(`update templates set stock = 10, version = version + 1 where id = $1`, drop.ID)
	}
	// A page with only the refused claim, whose user has no coupon.
	verdicts, err := book.Write(t.Context(), drop.ID, 1, []gate.Group{gateEntry(1, accepted(12, 2, "a"), accepted(13, 3, "a"))})
	h.Must(err)
	if got := reasons(verdicts, 12, 13); !slices.Equal(got, []string{"sold_out", ""}) {
		t.Errorf("%q", got)
	}
	if settled, refused := h.shard(drop.ID, 1); settled != 3 || refused != 1 {
		t.Errorf("%d settled, %d refused, want 3 and 1", settled, refused)
	}
	if _, issued := h.Balance(drop.ID); issued != 2 {
		t.Errorf("%d issued, want 2", issued)
	}
}

// TestAnEpochBeginsWhileAPageIsWritten: a keeper locks the template's row and
// rebuilds the gate after the page has written its coupons. The coupons belong to
// the former epoch, as the keeper counted them.
func TestAnEpochBeginsWhileAPageIsWritten(t *testing.T) {
	h := newClaimFixture(t, 1)
	book := couponsdb.NewGateRecorder(h.DB)
	drop := h.behindGate(10, 1)
	tx, commit := h.Hold(`select id from templates where id = $1 for no key update`, drop.ID)
	var verdicts []gate.Settlement
	var err error
	var writing sync.WaitGroup
	writing.Go(func() {
		verdicts, err = book.Write(t.Context(), drop.ID, 0, []gate.Group{gateEntry(1, accepted(21, 1, "a"), accepted(22, 2, "a"))})
	})
	h.Blocked(1)
	for _, table := range []string{"gates", "gate_shards"} {
		if _, err := tx.Exec(t.Context(), `update `+table+` set epoch = 2 where template_id = $1`, drop.ID); err != nil {
			t.Fatal(err)
		}
	}
	commit()
	writing.Wait()
	h.Must(err)
	if got := reasons(verdicts, 21, 22); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("%q", got)
	}
	if settled, _ := h.shard(drop.ID, 0); settled != 0 {
		t.Errorf("%d settled in the new epoch, want none", settled)
	}
	if base := h.Number(`select base from gates where template_id = $1`, drop.ID); base != 2 {
		t.Errorf("%d counted as of before the epoch, want 2", base)
	}
	if _, issued := h.Balance(drop.ID); issued != 2 {
		t.Errorf("%d issued, want 2", issued)
	}
}

// TestManyWritersOfOnePage: a writer that was considered dead comes back, and
// other writers write other shards at the same time.
func TestManyWritersOfOnePage(t *testing.T) {
	const users = 50
	h := newClaimFixture(t, 1)
	drop := h.behindGate(1000, 1)
	var pages [2][]gate.Group
	for i := range users {
		for shard := range pages {
			by := user.ID(2*i + shard + 1)
			pages[shard] = append(pages[shard], gateEntry(1, accepted(claim.ID(100+by), by, "a")))
		}
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			verdicts, err := couponsdb.NewGateRecorder(h.another(t)).Write(t.Context(), drop.ID, i%2, pages[i%2])
			if err != nil || len(verdicts) != users {
				t.Errorf("%d verdicts, %v", len(verdicts), err)
			}
			for _, v := range verdicts {
				if !v.Issued || v.CouponID == 0 {
					t.Errorf("%+v", v)
				}
			}
		})
	}
	all.Wait()
	for shard := range pages {
		if settled, refused := h.shard(drop.ID, shard); settled != users || refused != 0 {
			t.Errorf("shard %d: %d settled, %d refused, want %d and none", shard, settled, refused, users)
		}
	}
	if _, issued := h.Balance(drop.ID); issued != 2*users {
		t.Errorf("%d issued, want %d", issued, 2*users)
	}
}

// TestManyWritersOfFurtherClaims: claims without a key, of users that already
// have a coupon, differ only by their ids. One claim is in the page twice.
func TestManyWritersOfFurtherClaims(t *testing.T) {
	const users = 20
	h := newClaimFixture(t, 1)
	drop := h.behindGate(1000, 5)
	keyless := func(id claim.ID, by user.ID) gate.Accepted {
		return gate.Accepted{ID: id, UserID: by, Origin: claim.ByTap}
	}
	var first, further []gate.Group
	for by := user.ID(1); by <= users; by++ {
		first = append(first, gateEntry(1, accepted(claim.ID(by), by, "a")))
		further = append(further, gateEntry(1, keyless(claim.ID(100+by), by), keyless(claim.ID(200+by), by), keyless(claim.ID(100+by), by)))
	}
	_, err := couponsdb.NewGateRecorder(h.DB).Write(t.Context(), drop.ID, 0, first)
	h.Must(err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			verdicts, err := couponsdb.NewGateRecorder(h.another(t)).Write(t.Context(), drop.ID, 0, further)
			if err != nil {
				t.Error(err)
			}
			for _, v := range verdicts {
				if !v.Issued || v.CouponID == 0 {
					t.Errorf("%+v", v)
				}
			}
		})
	}
	all.Wait()
	if settled, refused := h.shard(drop.ID, 0); settled != 3*users || refused != 0 {
		t.Errorf("%d settled, %d refused, want %d and none", settled, refused, 3*users)
	}
	if _, issued := h.Balance(drop.ID); issued != 3*users {
		t.Errorf("%d issued, want %d", issued, 3*users)
	}
	if n := h.Number(`select count(distinct claim_id) from coupons where template_id = $1`, drop.ID); n != 3*users {
		t.Errorf("%d claims have a coupon, want %d", n, 3*users)
	}
}

// TestEqualIDsAreWrittenApart: two users whose claims were given the same random
// id get a coupon each, because the writer writes the claims in separate pages.
func TestEqualIDsAreWrittenApart(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.behindGate(10, 1)
	page := []gate.Group{gateEntry(1, accepted(11, 1, "a"), accepted(11, 2, "a"), accepted(12, 3, "a"))}
	wrote := 0
	w := gate.Writer{Stream: once{page: page}, Recorder: couponsdb.NewGateRecorder(h.DB), Wrote: func(issued, _ int) { wrote += issued }}
	_, err := w.Step(t.Context(), drop.ID, 0)
	h.Must(err)
	if n := h.Number(`select count(distinct user_id) from coupons where template_id = $1`, drop.ID); n != 3 || wrote != 3 {
		t.Errorf("%d users have a coupon, %d were written", n, wrote)
	}
}

// once is a stream with one page.
type once struct {
	gate.Stream
	page []gate.Group
}

func (o once) Take(context.Context, int64, int, int) ([]gate.Group, []gate.Poison, error) {
	return o.page, nil, nil
}

func (o once) Settle(context.Context, int64, int, []gate.Group, map[claim.ID]gate.Settlement) error {
	return nil
}
