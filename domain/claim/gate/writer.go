package gate

import (
	"context"
	"errors"
	"strings"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/redeemcode"
	"dropbell/domain/user"
)

// An Accepted claim waits to be written.
type Accepted struct {
	ID     claim.ID
	UserID user.ID
	Origin claim.Origin
	Key    string
	// Number is the claim's place among those accepted by its shard.
	Number int64
}

// A Group holds the claims that one decision accepted; a group is written whole.
type Group struct {
	Entry  string // its name on the stream
	Epoch  int64
	At     time.Time
	Claims []Accepted
}

// A Poison is an entry on the stream that is no group.
type Poison struct {
	Entry   string
	Reason  string
	Payload []byte
}

// A Settlement is the final result of an accepted claim. A claim that was not
// issued is given back to the shard. Reason is the code of the fault of a refused
// claim. A repetition that the shard did not recognise is neither issued nor
// refused: CouponID is then the coupon of the first request.
type Settlement struct {
	ID       claim.ID
	Issued   bool
	CouponID int64
	Reason   string
	// Held is set if users waited for the template when the claim was refused: its coupon is kept
	// for them and not given back to the shard.
	Held bool
}

// ErrUnwritable is returned when the database does not take the contents of a claim.
var ErrUnwritable = fault.New(fault.Invalid, "unwritable", "the database cannot take this claim")

// Stream is where accepted claims wait.
type Stream interface {
	// Take returns groups that no writer holds, or whose writer has been silent for a while,
	// and entries that cannot be read as groups.
	Take(ctx context.Context, templateID int64, shard int, limit int) ([]Group, []Poison, error)
	// Scan returns all groups after an entry ("" = from the first entry), including groups that
	// another writer holds.
	Scan(ctx context.Context, templateID int64, shard int, after string, limit int) ([]Group, []Poison, error)
	// Settle takes written groups off the stream and gives the coupons of refused
	// claims back to the shard. Each group is settled once, however often Settle is
	// called.
	Settle(ctx context.Context, templateID int64, shard int, groups []Group, verdicts map[claim.ID]Settlement) error
	// Drop takes a poison off the stream.
	Drop(ctx context.Context, templateID int64, shard int, p Poison) error
}

// Recorder stores accepted claims as coupons.
type Recorder interface {
	// Write decides the groups' claims for good and issues coupons as far as stock
	// and limit allow. A claim that was decided before keeps its verdict. After an
	// error some claims may be written: write all of them again. It returns
	// [ErrUnwritable] if the database does not take the contents of a claim.
	Write(ctx context.Context, templateID int64, shard int, groups []Group) ([]Settlement, error)
	// Refuse decides claims as refused for a reason, like Write.
	Refuse(ctx context.Context, templateID int64, shard int, groups []Group, reason string) ([]Settlement, error)
	// SetAside moves an entry that is no group to a list for operators.
	SetAside(ctx context.Context, templateID int64, shard int, p Poison) error
	// Refilled announces that coupons were given back.
	Refilled(ctx context.Context, templateID int64) error
}

// A Writer stores accepted claims in the database. Any number may run.
type Writer struct {
	Stream   Stream
	Recorder Recorder
	// Wrote, if set, is called after every transaction.
	Wrote func(issued, refused int)
	// Early, if set, is called with the number of claims that a shard accepted before
	// the drop opened by the database's clock. These claims are refused.
	Early func(templateID int64, claims int)
	// Used, if set, is called with the keys of redeem codes that have their coupon,
	// as soon as the coupon is stored. It may fail: another attempt with such a
	// code is refused all the same, only later.
	Used func(ctx context.Context, keys []string)
}

// groupsAtOnce is how many groups one transaction writes. A group has at most 256
// claims.
const groupsAtOnce = 8

// Step writes one batch of the claims that wait on one shard, and returns how many
// entries it handled. If the process dies before the transaction, another writer
// takes the entries over. If it dies between the transaction and the settlement,
// the other writer finds the claims decided and settles them.
func (w *Writer) Step(ctx context.Context, templateID int64, shard int) (int, error) {
	groups, poisons, err := w.Stream.Take(ctx, templateID, shard, groupsAtOnce)
	if err != nil {
		return 0, err
	}
	for _, p := range poisons {
		if err := w.Recorder.SetAside(ctx, templateID, shard, p); err != nil {
			return 0, err
		}
		if err := w.Stream.Drop(ctx, templateID, shard, p); err != nil {
			return 0, err
		}
	}
	if len(groups) == 0 {
		return len(poisons), nil
	}
	verdicts := map[claim.ID]Settlement{}
	if err := w.write(ctx, templateID, shard, groups, verdicts); err != nil {
		return 0, err
	}
	if err := w.Stream.Settle(ctx, templateID, shard, groups, verdicts); err != nil {
		return 0, err
	}
	for _, v := range verdicts {
		if !v.Issued {
			return len(groups) + len(poisons), w.Recorder.Refilled(ctx, templateID)
		}
	}
	return len(groups) + len(poisons), nil
}

// WriteAll writes all claims that wait on one shard and leaves them on the stream;
// the builder calls it after fencing the gate. It calls wrote after each page, with
// the number of the page's entries.
func (w *Writer) WriteAll(ctx context.Context, templateID int64, shard int, wrote func(entries int)) error {
	for after := ""; ; {
		groups, poisons, err := w.Stream.Scan(ctx, templateID, shard, after, groupsAtOnce)
		if err != nil {
			return err
		}
		for _, p := range poisons {
			if err := w.Recorder.SetAside(ctx, templateID, shard, p); err != nil {
				return err
			}
			after = later(after, p.Entry)
		}
		if len(groups) > 0 {
			if err := w.write(ctx, templateID, shard, groups, map[claim.ID]Settlement{}); err != nil {
				return err
			}
			after = later(after, groups[len(groups)-1].Entry)
		}
		if len(groups)+len(poisons) == 0 {
			return nil
		}
		wrote(len(groups) + len(poisons))
	}
}

// write decides groups. A claim that the database cannot take must not hold up
// other claims, so the groups are halved until this claim is alone.
func (w *Writer) write(ctx context.Context, templateID int64, shard int, groups []Group, into map[claim.ID]Settlement) error {
	verdicts, err := w.Recorder.Write(ctx, templateID, shard, groups)
	switch {
	case errors.Is(err, ErrUnwritable) && (len(groups) > 1 || len(groups[0].Claims) > 1):
		for _, half := range halves(groups) {
			if err := w.write(ctx, templateID, shard, half, into); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, ErrUnwritable):
		if verdicts, err = w.giveUp(ctx, templateID, shard, groups, err); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	refused, early := 0, 0
	for _, v := range verdicts {
		into[v.ID] = v
		if !v.Issued {
			refused++
		}
		if v.Reason == claim.ErrNotStarted.Code {
			early++
		}
	}
	if w.Early != nil && early > 0 {
		w.Early(templateID, early)
	}
	if w.Wrote != nil {
		w.Wrote(len(verdicts)-refused, refused)
	}
	w.reportUsedCodes(ctx, codesWithCoupon(groups, into))
	return nil
}

func (w *Writer) reportUsedCodes(ctx context.Context, keys []string) {
	if w != nil && w.Used != nil && len(keys) > 0 {
		w.Used(ctx, keys)
	}
}

// codesWithCoupon returns the keys of redeem codes that have a coupon: the claim itself
// was issued, or it was refused because the code has a coupon.
func codesWithCoupon(groups []Group, verdicts map[claim.ID]Settlement) (keys []string) {
	for _, g := range groups {
		for _, c := range g.Claims {
			v, decided := verdicts[c.ID]
			if c.Origin == claim.ByCode && decided && (v.Issued || v.CouponID != 0 || v.Reason == redeemcode.ErrUsed.Code) {
				keys = append(keys, c.Key)
			}
		}
	}
	return keys
}

// giveUp sets the single claim of groups aside and refuses it.
func (w *Writer) giveUp(ctx context.Context, templateID int64, shard int, groups []Group, cause error) ([]Settlement, error) {
	c := groups[0].Claims[0]
	p := Poison{Entry: groups[0].Entry + "/" + c.ID.String(), Reason: cause.Error(),
		Payload: []byte(c.ID.String() + " " + string(c.Origin))}
	if err := w.Recorder.SetAside(ctx, templateID, shard, p); err != nil {
		return nil, err
	}
	return w.Recorder.Refuse(ctx, templateID, shard, groups, ErrUnwritable.Code)
}

// halves divides groups, or the claims of a single one.
func halves(groups []Group) [2][]Group {
	if n := len(groups); n > 1 {
		return [2][]Group{groups[:n/2], groups[n/2:]}
	}
	first, second := groups[0], groups[0]
	n := len(first.Claims) / 2
	first.Claims, second.Claims = first.Claims[:n], second.Claims[n:]
	return [2][]Group{{first}, {second}}
}

// later returns the later of two entry names, "<milliseconds>-<sequence>".
func later(a, b string) string {
	if entryBefore(a, b) {
		return b
	}
	return a
}

func entryBefore(a, b string) bool {
	am, as, _ := strings.Cut(a, "-")
	bm, bs, _ := strings.Cut(b, "-")
	if am != bm {
		return numberBefore(am, bm)
	}
	return numberBefore(as, bs)
}

// numberBefore compares decimal numbers without leading zeros.
func numberBefore(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
