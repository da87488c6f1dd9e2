package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// TemplateList is one page of templates.
type TemplateList struct {
	Templates []Template `json:"templates" nullable:"false"`
	Next      string     `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last one."`
}

// Balance is a template's balance sheet, recomputed from the rows.
type Balance struct {
	TemplateID string        `json:"template_id" example:"1"`
	Balanced   bool          `json:"balanced" doc:"Whether every line balances and agrees with the counters, and the stock adds up."`
	Difference int64         `json:"difference" doc:"The sum of all differences of lines."`
	Stock      StockSheet    `json:"stock"`
	Waitlist   *WaitSheet    `json:"waitlist,omitempty" doc:"Of a drop with a waitlist."`
	Lines      []BalanceLine `json:"lines" nullable:"false" doc:"One for each slot and channel that has fired."`
}

// WaitSheet accounts for every user who ever joined the waitlist: joined = filled + waiting + lapsed + left + skipped.
type WaitSheet struct {
	Joined     int64 `json:"joined" example:"2214"`
	Filled     int64 `json:"filled" doc:"Got a coupon." example:"312"`
	Waiting    int64 `json:"waiting" doc:"With those to whom a coupon is offered now." example:"1830"`
	Lapsed     int64 `json:"lapsed" doc:"Did not accept two offers in time." example:"0"`
	Left       int64 `json:"left" doc:"Left, and may join again." example:"61"`
	Skipped    int64 `json:"skipped" doc:"It was their turn, and a rule refused the coupon; or the drop ended." example:"11"`
	Difference int64 `json:"difference" doc:"Users unaccounted for, or that the counters do not agree about." example:"0"`
}

// StockSheet accounts for every coupon: total = shelf + held + writing + issued.
type StockSheet struct {
	Total      int64 `json:"total" example:"100"`
	Shelf      int64 `json:"shelf" doc:"Can still be claimed." example:"60"`
	Held       int64 `json:"held" doc:"Kept for users of the waitlist." example:"0"`
	Writing    int64 `json:"writing" doc:"Accepted by a gate and not in the database yet." example:"0"`
	Issued     int64 `json:"issued" doc:"Coupons, counted, without those that were returned to stock." example:"40"`
	Returned   int64 `json:"returned" doc:"Coupons that were revoked and returned to stock, counted." example:"0"`
	PerUser    int64 `json:"per_user" doc:"The sum of the counters of the limit per user: issued and returned." example:"40"`
	OverLimit  int64 `json:"over_limit" doc:"Users with more than they may have." example:"0"`
	Difference int64 `json:"difference" doc:"Coupons unaccounted for." example:"0"`
}

// BalanceLine is the account of one slot and channel.
type BalanceLine struct {
	Slot       int           `json:"slot" example:"1"`
	Minutes    int           `json:"minutes" example:"5"`
	DueAt      time.Time     `json:"due_at"`
	State      string        `json:"state" enum:"waiting,firing,sending,finished,passed,moved,cancelled"`
	Channel    string        `json:"channel" example:"app"`
	Counted    parts.Account `json:"counted" doc:"The sums over the rows."`
	Kept       parts.Account `json:"kept" doc:"The values of the counters."`
	Twice      int64         `json:"twice" doc:"Users in more than one batch."`
	Difference int64         `json:"difference"`
	parts.Reported
	Archived bool `json:"archived,omitempty" doc:"The rows were removed after their retention: counted are the totals that were kept, which must still add up."`
}

type templateAnswer = pipeline.Versioned[Template]

const templateExample = `{"shop_number":"10","name":"20 off","kind":"amount_off","amount_off":2000,"currency":"CNY","stock":100,` +
	`"opens_at":"2027-01-01T12:00:00Z","closes_at":"2027-01-02T12:00:00Z","valid_hours":48}`

func (h *handlers) templateRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates", "create-template", "Create a template",
		pipeline.Route{Description: "It is a draft, which cannot be reserved, until it is published. A shop number that is new creates the shop.",
			Status: http.StatusCreated, Example: templateExample, Codes: []string{"shop_moved"}}), h.createTemplate)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates", "list-templates", "List templates",
		pipeline.Route{Description: "By opening.", Cells: &cells.List{At: "opens_at", ID: "id", Pages: cells.ByPage, Ascending: true}}), h.listTemplates)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}", "get-admin-template", "Show a template with its reminder slots and stock ledger",
		pipeline.Route{Codes: []string{"template_not_found"}}), pipeline.ByID(h.adminTemplate))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPatch, "/admin/templates/{id}", "change-template", "Change a template",
		pipeline.Route{Description: "A draft may change in every way; once published, only its texts, link, opening, closing, and more stock; " +
			"less of it down to the number issued, unless the gate holds it. Moving the opening moves every reminder that is not due yet.",
			Codes:   []string{"template_not_found", "precondition_required", "stale_version", "invalid_transition", "stock_below_issued", "budget_short"},
			Example: `{"stock":200}`}), pipeline.Patching(h.changeTemplate))
	for _, tr := range []struct {
		name template.Transition
		text string
	}{
		{template.Publishing, "Publish a template, which opens it for reservations"},
		{template.Pausing, "Pause claims; reminders are still sent"},
		{template.Resuming, "Resume claims"},
		{template.Closing, "Close a drop"},
		{template.Cancelling, "Cancel a drop before it opens"},
	} {
		pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates/{id}/"+string(tr.name), string(tr.name)+"-template", tr.text,
			pipeline.Route{Codes: []string{"template_not_found", "stale_version", "invalid_transition", "budget_short", "door_tests", "flight_red"},
				Example: `{"reason":"as planned"}`}), h.transition(tr.name))
	}
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/balance", "template-balance", "Recompute a template's balance sheet",
		pipeline.Route{Description: "For every slot and channel: reserved at fire = sent + skipped + expired + dead + in flight, counted from the rows. For the stock: total = shelf + writing + issued.",
			Codes: []string{"template_not_found"}}), pipeline.ByID(h.balance))
}

func (h *handlers) createTemplate(ctx context.Context, in *struct{ Body TemplateWish }) (*templateAnswer, error) {
	spec, err := in.Body.spec()
	if err != nil {
		return nil, err
	}
	t, err := h.Templates.Create(ctx, pipeline.ActorOf(ctx), spec, pipeline.RequestKey(ctx))
	return h.withoutSlots(t), err
}

func (h *handlers) withoutSlots(t template.Template) *templateAnswer {
	return pipeline.AtVersion(t.Version, templateJSON(t, h.Now()))
}

// withSlots completes the answer about one template.
func (h *handlers) withSlots(ctx context.Context, t template.Template) (*templateAnswer, error) {
	board, err := h.Board.Board(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	account, err := h.Accounts.Of(ctx, t)
	if err != nil {
		return nil, err
	}
	tally, err := h.Tallies.Tally(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	answer := h.withoutSlots(t)
	answer.Body.Coupons = tallyJSON(tally)
	answer.Body.Ledger = stockJSON(account)
	answer.Body.Slots, answer.Body.Earlier = slotsJSON(board.Rows), slotsJSON(board.Earlier)
	return answer, nil
}

func (h *handlers) adminTemplate(ctx context.Context, id int64) (*templateAnswer, error) {
	t, err := h.Templates.Template(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.withSlots(ctx, t)
}

func (h *handlers) changeTemplate(ctx context.Context, id, version int64, patch TemplatePatch) (*templateAnswer, error) {
	if err := pipeline.CheckText("body.reason", patch.More.Reason); err != nil {
		return nil, err
	}
	old, err := h.Templates.Template(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	spec, err := patch.apply(old.Spec)
	if err != nil {
		return nil, err
	}
	t, err := h.Templates.Edit(ctx, pipeline.ActorOf(ctx), id, template.Edition{Version: version, Spec: spec, Reason: patch.More.Reason, RemindOnce: patch.More.RemindOnce})
	if err != nil {
		return nil, err
	}
	return h.withSlots(ctx, t)
}

func (h *handlers) transition(tr template.Transition) func(context.Context, *pipeline.Step[pipeline.Reason]) (*templateAnswer, error) {
	return pipeline.Stepping[pipeline.Reason](func(ctx context.Context, id, version int64, reason string) (*templateAnswer, error) {
		take := h.Templates.Do
		if pipeline.Recovering(ctx) {
			take = h.Templates.Redo
		}
		t, err := take(ctx, pipeline.ActorOf(ctx), id, version, tr, reason)
		if err != nil {
			return nil, err
		}
		return h.withSlots(ctx, t)
	})
}

func (h *handlers) balance(ctx context.Context, id int64) (*struct{ Body Balance }, error) {
	if _, err := h.Templates.Template(ctx, pipeline.ActorOf(ctx), id); err != nil {
		return nil, err
	}
	lines, err := h.Board.Balance(ctx, id)
	if err != nil {
		return nil, err
	}
	kept, err := h.Board.KeptBalance(ctx, id)
	if err != nil {
		return nil, err
	}
	lines = append(kept, lines...)
	l, err := h.Ledgers.Ledger(ctx, id)
	if err != nil {
		return nil, err
	}
	off, err := h.Figures.Off(ctx, id)
	if err != nil {
		return nil, err
	}
	b := Balance{TemplateID: pipeline.Decimal(id), Balanced: l.Difference() == 0 && off == 0, Stock: StockSheet{l.Total, l.OnSale, l.Held, l.Writing, l.Issued, l.Returned, l.PerUser,
		l.OverLimit, l.Difference()}, Lines: pipeline.Each(lines, balanceJSON)}
	w, waitsOff, err := h.Ledgers.WaitsCounted(ctx, id)
	if err != nil {
		return nil, err
	}
	if w.Joined > 0 {
		b.Waitlist = &WaitSheet{w.Joined, w.Filled, w.Waiting, w.Lapsed, w.Left, w.Skipped, w.Difference() + waitsOff}
		b.Balanced = b.Balanced && b.Waitlist.Difference == 0
	}
	for _, l := range lines {
		b.Difference += l.Difference()
		b.Balanced = b.Balanced && l.Difference() == 0
	}
	return &struct{ Body Balance }{b}, nil
}

func balanceJSON(l reminder.BalanceLine) BalanceLine {
	return BalanceLine{Slot: int(l.Slot.Slot), Minutes: l.Slot.Slot.Minutes(), DueAt: l.Slot.DueAt.UTC(), State: string(l.Slot.State),
		Channel: l.Channel.String(), Counted: parts.AccountOf(l.Counted), Kept: parts.AccountOf(l.Kept), Twice: l.Twice, Difference: l.Difference(), Reported: parts.ReportedOf(l.Reported), Archived: l.Archived}
}
