package campaign

import (
	"context"
	"errors"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// UndoPause resumes the campaign if it still has version, which its pause gave it. It returns
// [staff.ErrTooLate] if the campaign has changed in another way since. A second undo changes
// nothing.
func (s *Service) UndoPause(ctx context.Context, by staff.Actor, id, version int64) (Campaign, staff.Undone, error) {
	c, err := s.load(ctx, by, id)
	if err != nil {
		return c, 0, err
	}
	if c.Version == version && c.State == Paused && c.HeldAt == nil {
		next, err := s.Do(ctx, by, id, version, Resuming, "")
		if err == nil {
			return next, staff.Undid, nil
		}
		if fault.KindOf(err) != fault.Conflict {
			return c, 0, err
		}
		if c, err = s.load(ctx, by, id); err != nil {
			return c, 0, err
		}
	}
	if version > 0 && c.Version == version+1 && c.State == Running {
		return c, staff.UndidBefore, nil
	}
	return c, 0, staff.ErrTooLate.Because("the campaign has changed since").Told("fault.undo.campaign")
}

// ErrDraftInUse refuses to delete a draft while a test message of it is on its way.
var ErrDraftInUse = fault.New(fault.Conflict, "campaign_draft_in_use", "a test message of this draft is on its way; try again in a minute")

// DraftStore deletes and restores drafts.
type DraftStore interface {
	// DeleteDraft deletes the draft with the version, so that it can be restored. It returns
	// [fault.ErrStale] if there is no such draft, or [ErrDraftInUse].
	DeleteDraft(ctx context.Context, id, version int64, e staff.Entry) error
	// DeletedDraft returns [ErrNotFound] if there is none to restore.
	DeletedDraft(ctx context.Context, id int64) (staff.DeletedDraft, error)
	// RestoreDraft returns [ErrNotFound] if there is none to restore.
	RestoreDraft(ctx context.Context, id int64, e staff.Entry) error
}

// Deletable returns [ErrTransition] unless c is a draft.
func (c Campaign) Deletable() error {
	if c.State == Draft {
		return nil
	}
	return ErrTransition.Because("the campaign is %s; only drafts can be deleted", c.State).Told("fault.campaign_is." + string(c.State))
}

// Delete deletes a draft and ends its request for approval. It returns [ErrTransition] for a
// campaign that is no draft, and [fault.ErrStale] if the version is no longer current.
func (s *Service) Delete(ctx context.Context, by staff.Actor, id, version int64, reason string) (Campaign, error) {
	c, err := s.load(ctx, by, id)
	if err != nil {
		return c, err
	}
	if err := c.Deletable(); err != nil {
		return c, err
	}
	if c.Version != version {
		return c, fault.ErrStale
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return c, s.Store.DeleteDraft(ctx, id, version, entry(by, "campaign.delete", c, reason, Audited(c.Spec), nil))
}

// DeletedDraft returns a deleted draft to staff who may restore it, and [ErrNotFound] to others.
func (s *Service) DeletedDraft(ctx context.Context, by staff.Actor, id int64) (staff.DeletedDraft, error) {
	d, err := s.Store.DeletedDraft(ctx, id)
	if err == nil {
		err = May(by, staff.ManageCampaigns, d.Shop)
	}
	return d, err
}

// Restore makes a deleted draft a draft again. A draft that was restored before is returned
// unchanged. It returns [ErrNotFound] if there is nothing to restore.
func (s *Service) Restore(ctx context.Context, by staff.Actor, id int64) (Campaign, staff.Undone, error) {
	if c, err := s.load(ctx, by, id); !errors.Is(err, ErrNotFound) {
		return c, staff.UndidBefore, err
	}
	d, err := s.DeletedDraft(ctx, by, id)
	if err != nil {
		return Campaign{}, 0, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	undone := staff.Undid
	err = s.Store.RestoreDraft(ctx, id, entry(by, "campaign.restore", Campaign{ID: id, Spec: Spec{Shop: d.Shop}}, "", nil, nil))
	if errors.Is(err, ErrNotFound) { // another member was faster, or it was too late
		undone, err = staff.UndidBefore, nil
	}
	if err != nil {
		return Campaign{}, 0, err
	}
	c, err := s.load(ctx, by, id)
	return c, undone, err
}
