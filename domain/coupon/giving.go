package coupon

import (
	"errors"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/job"
	"dropbell/domain/template"
)

// A Source says where the users of a list were named.
type Source struct {
	// File is the name of the uploaded file.
	File string `json:"file,omitempty"`
	// IDs is whether a request named the users itself, without a file.
	IDs bool `json:"ids,omitempty"`
}

// CheckGiving returns nil if coupons of t can be given to lists of users, or be
// tried in a dry run, otherwise a [template.ErrTransition] with the reason.
func CheckGiving(t template.Template, dryRun bool, now time.Time) error {
	switch {
	case t.Stored == template.Draft || t.Stored == template.Cancelled:
		return template.ErrTransition.Because("coupons of a %s template cannot be given away", t.Stored).Told("fault.grant_" + string(t.Stored))
	case t.OpeningMode.Drawn():
		return template.ErrTransition.Because("a draw decides who gets the coupons of this drop").Told("fault.grant_drawn")
	case errors.Is(claim.Admit(t, claim.ByGrant, now), claim.ErrEnded):
		return template.ErrTransition.Because("the drop is over: staff closed it early, or its coupons are not valid any longer").Told("fault.grant_over")
	case t.Stored == template.Paused && !dryRun: // a list is granted once: no user on it would get a coupon
		return template.ErrTransition.Because("the template is paused; resume it before its coupons are given away").Told("fault.grant_paused")
	}
	return nil
}

// CheckApplying returns nil if the dry run j can be applied to t, otherwise a
// [template.ErrTransition] with the reason. It does not check whether j was applied
// before.
func (p GrantParams) CheckApplying(j job.Job, t template.Template, now time.Time) error {
	if err := p.applicable(j); err != nil {
		return err
	}
	return CheckGiving(t, false, now)
}

func (p GrantParams) applicable(j job.Job) error {
	switch {
	case !p.DryRun || j.State != job.Done:
		return template.ErrTransition.Because("only a dry run that is done can be applied").Told("fault.grant_not_done")
	case j.Total == 0:
		return template.ErrTransition.Because("the list has no rows; there is nobody to give a coupon to").Told("fault.grant_empty")
	}
	return nil
}
