package redeemcode

import (
	"context"

	"dropbell/domain/detach"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// ErrNoAccessCode is the refusal of an access code for a drop without a door that opens by them.
var ErrNoAccessCode = ErrNotByCode.Because("this drop has no door for access codes; claim without one")

// AccessStore keeps which user each access code belongs to.
type AccessStore interface {
	// Bind gives the code with the serial number of batch b to the user, durably. A user who has an
	// access code of the drop already keeps that one, and the other stays unused. It returns [ErrUsed]
	// if the code is another user's, [ErrInvalid] if the batch was revoked, [user.ErrErased], and
	// [template.ErrNotOpen] if the drop is not published or is over.
	Bind(ctx context.Context, b Batch, s Serial, by user.ID) error
}

// Access binds access codes to users. An access code opens a door of a drop: it is a code of a batch
// that was made for a drop with such a door; see [template.ToCodes].
type Access struct {
	Codes     *Redeemer // reads codes
	Store     AccessStore
	Templates interface {
		// Template returns [template.ErrNotFound] if there is none.
		Template(ctx context.Context, id int64) (template.Template, error)
	}
	// Bound is told of each user who has an access code of the drop now, so that the user's door is found
	// anew; nil = nothing remembers doors.
	Bound func(templateID int64, by user.ID)
}

// Open binds the code that the user typed to the user, who from then on comes through the drop's door for
// access codes. It can be repeated, before the opening too. It returns [ErrInvalid], without any query, for
// invented and mistyped codes, and also for codes of other drops; [ErrNoAccessCode]; [template.ErrNotFound];
// and the errors of [AccessStore].
func (a *Access) Open(ctx context.Context, by user.ID, templateID int64, typed string) error {
	if err := a.Codes.Genuine(typed); err != nil {
		return err
	}
	t, err := a.Templates.Template(ctx, templateID)
	if err == nil && t.Stored == template.Draft {
		err = template.ErrNotFound
	}
	if err == nil && !t.TakesAccessCodes() {
		err = ErrNoAccessCode
	}
	if err != nil {
		return err
	}
	b, serial, err := a.Codes.read(ctx, typed)
	if err == nil && b.TemplateID != templateID {
		err = ErrInvalid.Because("this is not an access code of this drop; check what was typed")
	}
	if err != nil {
		return err
	}
	binding, cancel := detach.Context(ctx)
	defer cancel()
	if err := a.Store.Bind(binding, b, serial, by); err != nil {
		return err
	}
	if a.Bound != nil {
		a.Bound(templateID, by)
	}
	return nil
}
