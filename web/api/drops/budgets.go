package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/money"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// Budget limits what the coupons of a drop, of a shop's drops in one currency, or of a campaign may take off.
type Budget struct {
	Scope     string    `json:"scope" enum:"drop,shop,campaign" example:"drop"`
	Subject   string    `json:"subject" doc:"The id of the template or campaign, or the shop's number." example:"1"`
	Name      string    `json:"name" example:"Moon cake night"`
	Currency  string    `json:"currency" example:"CNY"`
	Amount    int64     `json:"amount" doc:"Minor units, as all amounts here." example:"1000000"`
	Committed int64     `json:"committed" doc:"The greatest discount of all coupons that the published drops may give: their whole stock, or what was issued if staff closed or cancelled the drop. For a campaign that of the coupons that it has given. It never exceeds amount." example:"800000"`
	Used      int64     `json:"used" doc:"The greatest discount of the issued coupons." example:"640000"`
	Share     float64   `json:"share" doc:"used ÷ amount, to a thousandth." minimum:"0" maximum:"1" example:"0.64"`
	Level     string    `json:"level" enum:"fine,near,used_up" doc:"near from 80 % on; used_up when no further coupon fits." example:"fine"`
	Since     time.Time `json:"since" doc:"When the budget began. Coupons that were issued before by drops of the shop that had ended do not count."`
}

// BudgetList is every budget the caller may see.
type BudgetList struct {
	Budgets []Budget `json:"budgets" nullable:"false"`
}

// BudgetWish sets a budget.
type BudgetWish struct {
	Amount int64  `json:"amount" minimum:"0" maximum:"1000000000000000" doc:"Minor units; 0 removes the budget." example:"1000000"`
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"For the audit log." example:"It goes well"`
}

// ShopBudgetWish sets a shop's budget in one currency.
type ShopBudgetWish struct {
	BudgetWish
	Currency string `json:"currency" doc:"ISO 4217." example:"CNY"`
}

func (h *handlers) budgetRoutes() {
	const effect = "A drop that does not fit with its whole stock cannot be published, and its stock cannot be raised beyond it (budget_short). So issued coupons never pass a budget."
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/budgets", "list-budgets", "List budgets", pipeline.Route{Cells: &cells.List{}, Description: "Of shops, and of drops and campaigns that have not ended more than a week ago."}), h.listBudgets)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/templates/{id}/budget", "put-template-budget", "Set the budget of a drop",
		pipeline.Route{Description: effect, Status: http.StatusNoContent, Codes: []string{"template_not_found", "budget_not_found", "budget_committed"}, Example: `{"amount":1000000,"reason":"As planned"}`}), h.putDropBudget)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/shops/{number}/budget", "put-shop-budget", "Set the budget of a shop",
		pipeline.Route{Description: effect, Status: http.StatusNoContent, Codes: []string{"shop_not_found", "budget_not_found", "budget_committed"}, Example: `{"currency":"CNY","amount":1000000,"reason":"As planned"}`}), h.putShopBudget)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/campaigns/{id}/budget", "put-campaign-budget", "Set the budget of a campaign",
		pipeline.Route{Description: "Limits what the coupons that the campaign gives may take off, each counted with its greatest discount. Recipients for whom it does not pay are skipped with the reason campaign_budget.",
			Status: http.StatusNoContent, Codes: []string{"campaign_not_found", "template_not_found", "budget_not_found", "budget_committed", "budget_no_coupons"},
			Example: `{"amount":1000000,"reason":"As planned"}`}), h.putCampaignBudget)
}

func budgetJSON(b budget.Budget) Budget {
	return Budget{string(b.Scope), pipeline.Decimal(b.Subject), b.Name, b.Currency, int64(b.Amount), int64(b.Committed), int64(b.Used),
		float64(b.Share()) / 1000, string(b.Level()), b.Since.UTC()}
}

func (h *handlers) listBudgets(ctx context.Context, _ *struct{}) (*struct{ Body BudgetList }, error) {
	list, err := h.Budgets.Budgets(ctx, pipeline.ActorOf(ctx))
	if err != nil {
		return nil, err
	}
	return &struct{ Body BudgetList }{BudgetList{pipeline.Each(list, budgetJSON)}}, nil
}

func (h *handlers) putDropBudget(ctx context.Context, in *struct {
	pipeline.Ref
	Body BudgetWish
}) (*struct{}, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	return nil, h.Budgets.SetDrop(ctx, pipeline.ActorOf(ctx), id, money.Amount(in.Body.Amount), in.Body.Reason)
}

func (h *handlers) putCampaignBudget(ctx context.Context, in *struct {
	pipeline.Ref
	Body BudgetWish
}) (*struct{}, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	return nil, h.Budgets.SetCampaign(ctx, pipeline.ActorOf(ctx), id, money.Amount(in.Body.Amount), in.Body.Reason)
}

func (h *handlers) putShopBudget(ctx context.Context, in *struct {
	Number string `path:"number" pattern:"^[1-9][0-9]{0,18}$"`
	Body   ShopBudgetWish
}) (*struct{}, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	return nil, h.Budgets.SetShop(ctx, pipeline.ActorOf(ctx), number, in.Body.Currency, money.Amount(in.Body.Amount), in.Body.Reason)
}
