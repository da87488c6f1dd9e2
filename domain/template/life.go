package template

import (
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/field"
)

// Publish returns t as published at now. It returns [ErrTransition] unless t
// is a draft, and a [fault.Fields] if its spec cannot be published.
func (t Template) Publish(now time.Time) (Template, error) {
	if err := t.in(now, Draft); err != nil {
		return t, err
	}
	if err := t.Check(); err != nil {
		return t, err
	}
	if err := t.CheckOpening(now); err != nil {
		return t, err
	}
	if err := CheckDoors(t.Spec, t.Doors); err != nil {
		return t, err
	}
	if err := t.CheckDoorsAhead(now); err != nil {
		return t, err
	}
	t.Stored, t.PublishedAt = Published, &now
	return t, nil
}

// Pause returns t with claims stopped; reminders still go out.
func (t Template) Pause(now time.Time) (Template, error) {
	if err := t.in(now, Scheduled, Open, SoldOut); err != nil {
		return t, err
	}
	t.Stored = Paused
	return t, nil
}

// Resume returns t with claims possible again.
func (t Template) Resume(now time.Time) (Template, error) {
	if err := t.in(now, Paused); err != nil {
		return t, err
	}
	t.Stored = Published
	return t, nil
}

// Close returns t as ended. No further reservations, reminders and claims are possible; issued
// coupons stay valid.
func (t Template) Close(now time.Time) (Template, error) {
	if err := t.in(now, Scheduled, Open, SoldOut, Paused); err != nil {
		return t, err
	}
	t.Stored, t.EndedAt = Closed, &now
	return t, nil
}

// Cancel returns t as called off. A drop that has opened can only be closed.
func (t Template) Cancel(now time.Time) (Template, error) {
	if err := t.in(now, Draft, Scheduled, Paused); err != nil {
		return t, err
	}
	if t.Stored != Draft && !now.Before(t.FirstOpening()) {
		return t, ErrTransition.Because("the drop has opened; close it instead of cancelling").Told("fault.drop_not_cancellable")
	}
	t.Stored, t.EndedAt = Cancelled, &now
	return t, nil
}

// Edit returns t with the new spec. All fields of a draft may change; a changed opening must
// pass [Spec.CheckDraftOpening]. After publication only
// name, description, claim link, an earlier or later opening and closing, and more stock are
// accepted; the error names every other changed field. Fields that do not belong to the kind and
// the target are ignored.
func (t Template) Edit(s Spec, now time.Time) (Template, error) {
	var promised Spec
	if t.Stored != Draft {
		promised = t.Spec
	}
	if err := s.check(promised); err != nil {
		return t, err
	}
	if err := CheckDoors(s, t.Doors); err != nil {
		return t, err
	}
	s = s.Own()
	if t.Stored == Draft {
		if !s.OpensAt.Equal(t.OpensAt) {
			if err := s.CheckDraftOpening(now); err != nil {
				return t, err
			}
		}
		t.Spec = s
		return t, nil
	}
	if err := t.in(now, Scheduled, Open, SoldOut, Paused); err != nil {
		return t, err
	}
	if err := t.checkPromises(s); err != nil {
		return t, err
	}
	switch {
	case s.Stock < t.Issued+t.Held:
		return t, ErrStockBelow.Because("%d coupons are issued or kept for users who wait; stock cannot be lower", t.Issued+t.Held)
	case s.Stock < t.Stock && t.ClaimMode == Gate:
		return t, ErrStockBelow.Because("the gate in Redis holds all of the stock already (%d, of which %d are issued), so it can only be raised; "+
			"to sell fewer, pause or close the drop", t.Stock, t.Issued)
	}
	if !s.OpensAt.Equal(t.OpensAt) {
		if !now.Before(t.FirstOpening()) {
			return t, ErrNotMovable
		}
		if err := s.CheckOpening(now); err != nil {
			return t, err
		}
		moved := t
		moved.OpensAt = s.OpensAt
		if err := moved.CheckDoorsAhead(now); err != nil {
			return t, err
		}
	}
	if !s.ClosesAt.After(now) {
		e := &fault.Fields{}
		e.Add("closes_at", "rule.closes_ahead", "must lie in the future; to end the drop now, close it")
		return t, e
	}
	t.Spec = s
	return t, nil
}

// checkPromises refuses changes of fields that are fixed by publication.
func (t Template) checkPromises(s Spec) error {
	t.Spec = t.Own() // programs before this one kept more
	e := &fault.Fields{}
	for _, name := range Fields.With(field.Fixed).Changed(s, t.Spec) {
		e.Add(name, "rule.fixed", "cannot change once the template is published")
	}
	return e.Err()
}

// same reports whether s and o have the same effect. Instants are compared as times, whatever
// their zones.
func (s Spec) same(o Spec) bool { return len(Fields.Changed(s, o)) == 0 }

func (t Template) in(now time.Time, legal ...State) error {
	if s := t.State(now); !slices.Contains(legal, s) {
		return ErrTransition.Because("the template is %s; this needs %s", s, either(legal)).Told("fault.template_is." + string(s))
	}
	return nil
}

// either joins states in prose: "draft, scheduled or paused".
func either(states []State) string {
	text := ""
	for i, s := range states {
		switch {
		case i == 0:
		case i == len(states)-1:
			text += " or "
		default:
			text += ", "
		}
		text += string(s)
	}
	return text
}
