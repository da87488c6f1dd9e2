package draw

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// MaxReason is the greatest length of the public reason of a struck entry, in characters.
const MaxReason = 200

// DeskStore is how a [Desk] changes draws. Each change is stored with its audit entry.
type DeskStore interface {
	// Draw returns [ErrNoDraw] if there is none.
	Draw(ctx context.Context, templateID int64) (Draw, error)
	// EntryGrowth returns how many entries there were at the end of each minute.
	EntryGrowth(ctx context.Context, templateID int64) ([]reminder.Growth, error)
	// Demand returns how many users wanted the last drops of the shop that are over.
	Demand(ctx context.Context, shop int64) (Demand, error)
	// Figures stores the figures of a public draw that a member typed. With the same figures of two
	// members they are the evidence, and complete is true. It returns [ErrNoDraw], [ErrNotPublic],
	// [ErrNotSealed], [ErrFiguresSame] or [ErrFiguresOff].
	Figures(ctx context.Context, templateID int64, figures string, e staff.Entry) (complete bool, err error)
	// Strike strikes an entry with a reason. A draw that was made is made again without it. It returns
	// [ErrNoDraw], [ErrNotEntered], [ErrStruck], or [ErrUsed] for a winner whose coupon is in use.
	Strike(ctx context.Context, templateID int64, who user.ID, reason string, e staff.Entry) error
}

// Faults of the desk.
var (
	ErrStruck = fault.New(fault.Conflict, "entry_struck", "the entry was struck before; it cannot win any more")
	ErrUsed   = fault.New(fault.Conflict, "coupon_not_usable", "the winner's coupon is locked or used; release or refund it first")
)

// Desk holds the use cases of staff about draws.
type Desk struct {
	Store     DeskStore
	Templates *template.Service
}

// Draw returns the draw of a template that the actor may see, or [ErrNoDraw].
func (d *Desk) Draw(ctx context.Context, by staff.Actor, templateID int64) (Draw, error) {
	if _, err := d.Templates.Template(ctx, by, templateID); err != nil {
		return Draw{}, err
	}
	return d.Store.Draw(ctx, templateID)
}

// Figures takes the figures of a public draw as a member typed them. The random value exists once a
// second member typed the same figures. It returns a [fault.Fields], [template.ErrNotFound],
// [staff.ErrForbidden], or the errors of [DeskStore.Figures].
func (d *Desk) Figures(ctx context.Context, by staff.Actor, templateID int64, typed string) (complete bool, err error) {
	t, err := d.own(ctx, by, templateID)
	if err != nil {
		return false, err
	}
	figures := Figures(strings.FieldsFunc(typed, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' }))
	if figures == "" || len(figures) > 1000 {
		e := &fault.Fields{}
		e.Add("figures", "rule.figures", "must be whole numbers, separated by spaces")
		return false, e
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return d.Store.Figures(ctx, templateID, figures, entryOf(by, "draw.figures", t, "", figures))
}

// Strike strikes the entry of a user. The reason is public; it must not name the user. Strike returns a
// [fault.Fields], [template.ErrNotFound], [staff.ErrForbidden], or the errors of [DeskStore.Strike].
func (d *Desk) Strike(ctx context.Context, by staff.Actor, templateID int64, who user.ID, reason string) error {
	t, err := d.own(ctx, by, templateID)
	if err != nil {
		return err
	}
	reason, e := strings.TrimSpace(reason), &fault.Fields{}
	switch n := utf8.RuneCountInString(reason); {
	case n == 0:
		e.Add("reason", "rule.required", "is required")
	case n > MaxReason:
		e.Add("reason", "rule.too_long", "must have at most %d characters", MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl):
		e.Add("reason", "rule.one_line", "must be one line")
	}
	if err := e.Err(); err != nil {
		return err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return d.Store.Strike(ctx, templateID, who, reason, entryOf(by, "draw.strike", t, reason, map[string]string{"user_id": who.String()}))
}

// own returns a template that the actor may change.
func (d *Desk) own(ctx context.Context, by staff.Actor, templateID int64) (template.Template, error) {
	t, err := d.Templates.Template(ctx, by, templateID)
	if err != nil {
		return t, err
	}
	return t, by.May(staff.ManageTemplates, t.ShopNumber)
}

func entryOf(by staff.Actor, action string, t template.Template, reason string, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "template", ObjectID: strconv.FormatInt(t.ID, 10), ShopNumber: t.ShopNumber, Reason: reason, After: after}
}
