package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// DeleteDraft deletes the draft so that it can be restored; see
// [template.DraftStore]. No event is needed: drafts are not public.
func (s Templates) DeleteDraft(ctx context.Context, id, version int64, e staff.Entry) error {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		deleted, err := pg.DeleteDraft(ctx, tx, pg.DropDraft, id, version, e)
		if err == nil && !deleted {
			err = fault.ErrStale
		}
		return err
	})
	if errors.Is(err, pg.ErrReferenced) {
		return template.ErrDraftInUse
	}
	return err
}

// DeletedDraft returns the deleted draft, or [template.ErrNotFound] if there is
// none to restore.
func (s Templates) DeletedDraft(ctx context.Context, id int64) (staff.DeletedDraft, error) {
	d, found, err := pg.DeletedDraftOf(ctx, s.Pool, pg.DropDraft, id, staff.DraftsKept)
	if err == nil && !found {
		err = template.ErrNotFound
	}
	return staff.DeletedDraft{ID: id, Shop: d.Shop, Name: d.Name, At: d.At, By: d.By}, pg.Translate(err)
}

// RestoreDraft restores the draft, or returns [template.ErrNotFound] if there is
// none to restore.
func (s Templates) RestoreDraft(ctx context.Context, id int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		restored, err := pg.RestoreDraft(ctx, tx, pg.DropDraft, id, staff.DraftsKept, e)
		if err == nil && !restored {
			err = template.ErrNotFound
		}
		return err
	})
}
