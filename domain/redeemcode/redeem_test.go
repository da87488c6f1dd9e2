package redeemcode_test

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"

	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
	"dropbell/musttest"
)

// fakeGate is a gate that answers before the coupon is stored, as the Redis gate
// does, with marks and uses.
type fakeGate struct {
	answer claim.Claim
	err    error
	asked  []claim.Request
	marked map[redeemcode.Serial]bool
	broken error
	used   bool
	batch  redeemcode.Batch
}

func (d *fakeGate) Claim(_ context.Context, r claim.Request) (claim.Claim, error) {
	d.asked = append(d.asked, r)
	c := d.answer
	if c.ID == 0 {
		c.ID = r.ID
	}
	return c, d.err
}

func (d *fakeGate) Used(_ context.Context, _ redeemcode.Batch, s redeemcode.Serial) (bool, error) {
	return d.marked[s], d.broken
}

func (d *fakeGate) Mark(_ context.Context, _ redeemcode.Batch, s redeemcode.Serial) error {
	d.marked[s] = true
	return d.broken
}

func (d *fakeGate) UseOf(context.Context, redeemcode.Serial) (redeemcode.Use, bool, error) {
	return redeemcode.Use{}, d.used, nil
}

func (d *fakeGate) BatchOf(context.Context, redeemcode.Serial) (redeemcode.Batch, error) {
	return d.batch, nil
}

func TestRedeemMarksOnlyWhatIsStored(t *testing.T) {
	keys, err := redeemcode.ParseKeys("1:" + base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for tests one")))
	musttest.OK(t, err)
	code, err := keys.Code(1, 417)
	musttest.OK(t, err)
	outage := errors.New("redis is away")
	for _, c := range []struct {
		name   string
		desk   fakeGate
		again  bool
		want   error
		marked bool
	}{
		{"issued", fakeGate{answer: claim.Claim{State: claim.Issued}}, false, nil, true},
		{"accepted, which may come to nothing", fakeGate{answer: claim.Claim{State: claim.Accepted}}, false, nil, false},
		{"somebody else's, stored", fakeGate{err: claim.ErrIdempotency, used: true}, false, redeemcode.ErrUsed, true},
		{"somebody else's, on its way", fakeGate{err: claim.ErrIdempotency}, false, redeemcode.ErrUsed, false},
		{"my own, of another request", fakeGate{answer: claim.Claim{ID: 9, State: claim.Issued}}, false, redeemcode.ErrUsed, true},
		{"my own, of this request", fakeGate{answer: claim.Claim{ID: 9, State: claim.Issued}}, true, nil, true},
		{"sold out", fakeGate{err: claim.ErrSoldOut}, false, claim.ErrSoldOut, false},
		{"limit", fakeGate{err: claim.ErrLimit}, false, claim.ErrLimit, false},
		{"undecided", fakeGate{err: claim.ErrOverloaded}, false, claim.ErrOverloaded, false},
		{"issued, without marks", fakeGate{answer: claim.Claim{State: claim.Issued}, broken: outage}, false, nil, true},
	} {
		d := c.desk
		d.marked = map[redeemcode.Serial]bool{}
		d.batch = redeemcode.Batch{ID: 3, TemplateID: 7, First: 1, Count: 1000, Key: 1, State: redeemcode.Ready}
		failures := 0
		var told []error
		r := redeemcode.Redeemer{Keys: keys, Batches: &d, Marks: &d, Uses: &d, Gate: &d, NewID: func(int64) claim.ID { return 5 },
			Failed: func(error) { failures++ }, Answered: func(err error) { told = append(told, err) }}
		_, err := r.Redeem(t.Context(), 1001, code.Text(), c.again)
		if !errors.Is(err, c.want) || c.want == nil && err != nil || d.marked[417] != c.marked {
			t.Errorf("%s: %v, marked %v", c.name, err, d.marked[417])
		}
		if len(d.asked) != 1 || d.asked[0] != (claim.Request{ID: 5, TemplateID: 7, UserID: 1001, Origin: claim.ByCode, Key: "417"}) {
			t.Errorf("%s: the gate was asked %+v", c.name, d.asked)
		}
		if (failures > 0) != (c.desk.broken != nil) || len(told) != 1 || told[0] != err {
			t.Errorf("%s: %d failures, told %v", c.name, failures, told)
		}
	}
}

func TestMarkedCodesAskNoGate(t *testing.T) {
	keys, err := redeemcode.ParseKeys("1:" + base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for tests one")))
	musttest.OK(t, err)
	code, err := keys.Code(1, 417)
	musttest.OK(t, err)
	d := &fakeGate{answer: claim.Claim{ID: 9, State: claim.Issued}, marked: map[redeemcode.Serial]bool{417: true},
		batch: redeemcode.Batch{ID: 3, TemplateID: 7, First: 1, Count: 1000, Key: 1, State: redeemcode.Ready}}
	r := redeemcode.Redeemer{Keys: keys, Batches: d, Marks: d, Uses: d, Gate: d, NewID: func(int64) claim.ID { return 5 }}
	if _, err := r.Redeem(t.Context(), 1001, code.Text(), false); !errors.Is(err, redeemcode.ErrUsed) || len(d.asked) != 0 {
		t.Errorf("%v, the gate was asked %d times", err, len(d.asked))
	}
	if c, err := r.Redeem(t.Context(), 1001, code.Text(), true); err != nil || c.ID != 9 {
		t.Errorf("repeated: %+v, %v", c, err)
	}
	d.batch.Key = 2
	if _, err := r.Redeem(t.Context(), 1001, code.Text(), true); !errors.Is(err, redeemcode.ErrInvalid) {
		t.Errorf("a batch of another key: %v", err)
	}
}
