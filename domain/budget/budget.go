// Package budget limits what the coupons of a drop, of all drops of a shop in one
// currency, or of a campaign may take off. Every coupon counts with its greatest discount. A published drop
// commits its whole stock, which no gate can exceed; so the coupons that are issued can
// never pass the budget, however many are claimed at once. A campaign commits the coupons that it
// has given, which are counted in the transaction that gives them.
package budget

import (
	"context"
	"fmt"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/figure"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Scope is what a budget limits.
type Scope string

// The scopes.
const (
	Drop     Scope = "drop"
	Shop     Scope = "shop"
	Campaign Scope = "campaign"
)

// Errors of budgets.
var (
	// ErrShort says that a drop commits more than a budget has left.
	ErrShort = fault.New(fault.Conflict, "budget_short", "the budget does not cover the stock; lower the stock or raise the budget")
	// ErrCommitted says that a budget is less than what is committed already.
	ErrCommitted = fault.New(fault.Conflict, "budget_committed", "published drops commit more than this amount already; choose a higher amount or close a drop")
	ErrNoShop    = fault.New(fault.NotFound, "shop_not_found", "there is no such shop; create it first")
	// ErrNoCoupons says that a campaign gives no coupons that a budget could limit.
	ErrNoCoupons = fault.New(fault.Conflict, "budget_no_coupons", "the campaign gives no coupons; choose the coupon that it gives first")
	ErrNotFound  = fault.New(fault.NotFound, "budget_not_found", "there is no such budget; list the budgets and choose one of them")
)

// Worth returns the greatest amount that one coupon can take off.
func Worth(s template.Spec) money.Amount {
	if s.Kind == template.PercentOff {
		return s.MaxOff
	}
	return s.AmountOff
}

// A Key names a budget.
type Key struct {
	Scope Scope
	// Subject is the id of the drop or campaign, or the shop's number.
	Subject  int64
	Currency string
}

// A Budget is an amount with what is committed and used of it, in minor units.
type Budget struct {
	Key
	Name   string // of the drop, the shop or the campaign
	Shop   int64  // of a campaign without a shop it is the drop's
	Amount money.Amount
	Since  time.Time
	// Committed is the greatest discount of all coupons that counted drops may give; Used is
	// that of the issued coupons. For a campaign both are that of the coupons that it has given.
	Committed, Used money.Amount
	// Taken is what paid orders took off with the issued coupons. Only [Service.Drawn] knows it.
	Taken money.Amount
	// Least is the least worth of a coupon of the counted drops that may still give coupons
	// away; 0 = there is none.
	Least money.Amount
}

// A Level is how far a budget is used.
type Level string

// The levels: below 80 %, from 80 % on, and no room for another coupon.
const (
	Fine   Level = "fine"
	Near   Level = "near"
	UsedUp Level = "used_up"
)

// Level returns how far the budget is used.
func (b Budget) Level() Level {
	switch {
	case b.Used >= b.Amount, b.Least > 0 && b.Amount-b.Used < b.Least:
		return UsedUp
	case b.Share() >= 800:
		return Near
	}
	return Fine
}

// Share returns the used part of the amount in thousandths, at most [figure.Whole].
func (b Budget) Share() int64 {
	if b.Amount <= 0 {
		return 0
	}
	used := min(max(0, b.Used), b.Amount)
	return figure.Shares([]int64{int64(used), int64(b.Amount - used)})[0]
}

// Room returns [ErrShort] unless a drop with this stock and worth fits into what the other
// drops leave of the amount. whose names the budget's owner in the error.
func Room(amount, others, worth money.Amount, stock int64, whose string) error {
	most := int64(0)
	if left := amount - others; left > 0 {
		most = int64(left / max(1, worth))
	}
	if stock <= most {
		return nil
	}
	return ErrShort.Because("%s pays for %d coupons of this drop, which has %d; lower the stock or raise the budget", whose, most, stock)
}

// Store keeps budgets.
type Store interface {
	// Set stores the amount and the audit entry in one transaction. A new budget begins now.
	// It returns [ErrCommitted] if more is committed, and [ErrNoShop] for a shop that does not
	// exist. For a campaign it may return [ErrNoCoupons]. For amount 0 it removes the budget, or returns [ErrNotFound].
	Set(ctx context.Context, k Key, amount money.Amount, e staff.Entry) error
	// Budgets returns the budgets of the shops (none = all) and of their drops that may still
	// give coupons away.
	Budgets(ctx context.Context, shops []int64) ([]Budget, error)
	// Budget returns one budget, or [ErrNotFound].
	Budget(ctx context.Context, k Key) (Budget, error)
	// Taken sets what paid orders took off of each budget in the list.
	Taken(ctx context.Context, list []Budget) error
}

// Templates finds drops.
type Templates interface {
	Template(ctx context.Context, by staff.Actor, id int64) (template.Template, error)
}

// Campaigns finds campaigns.
type Campaigns interface {
	// Campaign returns a campaign that the actor may see.
	Campaign(ctx context.Context, by staff.Actor, id int64) (campaign.Status, error)
}

// Service holds the use cases of staff around budgets.
type Service struct {
	Store     Store
	Templates Templates
	Campaigns Campaigns
}

// Budgets returns the budgets that the actor may see.
func (s *Service) Budgets(ctx context.Context, by staff.Actor) ([]Budget, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Budgets(ctx, by.Shops)
}

// Drawn returns the budgets that the actor may see, with what paid orders took off.
func (s *Service) Drawn(ctx context.Context, by staff.Actor) ([]Budget, error) {
	list, err := s.Budgets(ctx, by)
	if err == nil {
		err = s.Store.Taken(ctx, list)
	}
	return list, err
}

// OfDrop returns the drop's budget, or [ErrNotFound].
func (s *Service) OfDrop(ctx context.Context, by staff.Actor, templateID int64) (Budget, error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return Budget{}, err
	}
	return s.Store.Budget(ctx, Key{Drop, t.ID, t.Currency})
}

// SetDrop sets the budget of a drop in the drop's currency; 0 removes it.
func (s *Service) SetDrop(ctx context.Context, by staff.Actor, templateID int64, amount money.Amount, reason string) error {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return err
	}
	return s.set(ctx, by, Key{Drop, t.ID, t.Currency}, t.ShopNumber, amount, reason)
}

// SetCampaign sets the budget of the coupons that a campaign gives, in the currency of their drop; 0
// removes it. Recipients for whom it does not pay are skipped. It may return [ErrNoCoupons].
func (s *Service) SetCampaign(ctx context.Context, by staff.Actor, campaignID int64, amount money.Amount, reason string) error {
	t, shop, err := s.GivenBy(ctx, by, campaignID)
	if err != nil {
		return err
	}
	return s.set(ctx, by, Key{Campaign, campaignID, t.Currency}, shop, amount, reason)
}

// GivenBy returns the drop whose coupons the campaign gives, and the shop whose staff decide about
// the campaign; 0 = staff of all shops. It returns [ErrNoCoupons] if the campaign gives none.
func (s *Service) GivenBy(ctx context.Context, by staff.Actor, campaignID int64) (t template.Template, shop int64, err error) {
	c, err := s.Campaigns.Campaign(ctx, by, campaignID)
	if err != nil {
		return t, 0, err
	}
	if c.GrantTemplate == 0 {
		return t, 0, ErrNoCoupons
	}
	t, err = s.Templates.Template(ctx, by, c.GrantTemplate)
	return t, c.Shop, err
}

// SetShop sets the budget of a shop in one currency; 0 removes it.
func (s *Service) SetShop(ctx context.Context, by staff.Actor, shop int64, currency string, amount money.Amount, reason string) error {
	return s.set(ctx, by, Key{Shop, shop, currency}, shop, amount, reason)
}

// maxReason is how many characters a reason may have.
const maxReason = 500

// MaxAmount is the greatest budget.
const MaxAmount = money.Amount(1_000_000_000_000_000)

func (s *Service) set(ctx context.Context, by staff.Actor, k Key, shop int64, amount money.Amount, reason string) error {
	if err := by.May(staff.ManageTemplates, shop); err != nil {
		return err
	}
	e := &fault.Fields{}
	if amount < 0 || amount > MaxAmount {
		e.Add("amount", "rule.amount", "must be between %d and %d minor units", 0, MaxAmount)
	}
	if !money.ValidCurrency(k.Currency) {
		e.Add("currency", "rule.currency", "must be a three-letter ISO 4217 code such as CNY")
	}
	if n := len([]rune(reason)); n < 1 || n > maxReason {
		e.Add("reason", "rule.reason", "say why, in at most %d characters", maxReason)
	}
	if err := e.Err(); err != nil {
		return err
	}
	kind := "template"
	switch k.Scope {
	case Shop:
		kind = "shop"
	case Campaign:
		kind = "campaign"
	}
	return s.Store.Set(ctx, k, amount, staff.Entry{Actor: by, Action: "budget.set", ObjectKind: kind, ObjectID: fmt.Sprint(k.Subject), ShopNumber: shop,
		Reason: reason, After: Set{k.Currency, int64(amount)}})
}

// Set is a budget in the audit log.
type Set struct {
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"`
}
