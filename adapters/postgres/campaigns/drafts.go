package campaigns

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// DeleteDraft deletes the draft and its requests for approval so that they can be restored; see
// [campaign.DraftStore]. It returns [campaign.ErrDraftInUse] while a test message is being sent,
// which is rendered from the campaign's row.
func (s Campaigns) DeleteDraft(ctx context.Context, id, version int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var testing bool
		err := tx.QueryRow(ctx, `select exists (select from batches where kind = 'test' and owner_id = $1 and state <> 'done')`, id).Scan(&testing)
		if err != nil {
			return err
		}
		if testing {
			return campaign.ErrDraftInUse
		}
		deleted, err := pg.DeleteDraft(ctx, tx, pg.CampaignDraft, id, version, e)
		if err == nil && !deleted {
			err = fault.ErrStale
		}
		return err
	})
}

// DeletedDraft returns [campaign.ErrNotFound] if there is none to restore.
func (s Campaigns) DeletedDraft(ctx context.Context, id int64) (staff.DeletedDraft, error) {
	d, found, err := pg.DeletedDraftOf(ctx, s.Pool, pg.CampaignDraft, id, staff.DraftsKept)
	if err == nil && !found {
		err = campaign.ErrNotFound
	}
	return staff.DeletedDraft{ID: id, Shop: d.Shop, Name: d.Name, At: d.At, By: d.By}, pg.Translate(err)
}

// RestoreDraft returns [campaign.ErrNotFound] if there is none to restore.
func (s Campaigns) RestoreDraft(ctx context.Context, id int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		restored, err := pg.RestoreDraft(ctx, tx, pg.CampaignDraft, id, staff.DraftsKept, e)
		if err == nil && !restored {
			err = campaign.ErrNotFound
		}
		return err
	})
}
