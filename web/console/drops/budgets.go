package drops

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/budget"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// showBudgets lists the budgets, with a form to set one.
func (h *handlers) showBudgets(w http.ResponseWriter, r *http.Request) error {
	v := map[string]string{"scope": r.FormValue("scope"), "subject": r.FormValue("subject"), "currency": r.FormValue("currency")}
	if v["currency"] == "" {
		v["currency"] = "CNY"
	}
	return h.drawBudgets(w, r, http.StatusOK, droppages.Budgets{Values: v})
}

func (h *handlers) drawBudgets(w http.ResponseWriter, r *http.Request, status int, p droppages.Budgets) (err error) {
	p.List, err = shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]budget.Budget, error) {
		return h.Budgets.Drawn(r.Context(), shell.Actor(r))
	}, func(a, b budget.Budget) int {
		return cmp.Or(cmp.Compare(b.Scope, a.Scope), cmp.Compare(b.Subject, a.Subject), cmp.Compare(a.Currency, b.Currency))
	}, 0)
	if err != nil {
		return err
	}
	if p.Shops, err = h.AllShopsOf(r); err != nil {
		return err
	}
	if id, bad := strconv.ParseInt(p.Values["subject"], 10, 64); bad == nil && p.Values["scope"] == string(budget.Drop) {
		t, _, err := h.template(r, id)
		if err != nil {
			return err
		}
		p.Drop = &t
	} else if bad == nil && p.Values["scope"] == string(budget.Campaign) {
		t, place, err := h.givenBy(r, id)
		if err != nil {
			return err
		}
		c, err := h.cells[place].Budgets.Campaigns.Campaign(r.Context(), shell.Actor(r), id)
		if err != nil {
			return err
		}
		p.Campaign, p.Values["currency"] = c.Name, t.Currency
	}
	return h.Show(w, r, status, p.Page())
}

// givenBy returns the drop whose coupons a campaign gives, with the place of its database.
func (h *handlers) givenBy(r *http.Request, campaign int64) (template.Template, int, error) {
	return shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (template.Template, error) {
		t, _, err := h.Budgets.GivenBy(r.Context(), shell.Actor(r), campaign)
		return t, err
	})
}

// setBudget sets or removes a budget.
func (h *handlers) setBudget(w http.ResponseWriter, r *http.Request) error {
	p := droppages.Budgets{Values: map[string]string{}}
	for _, name := range []string{"scope", "subject", "currency", "amount", "reason"} {
		p.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	rd := &shell.Reading{Values: p.Values}
	subject := rd.Number("subject")
	p.Values["currency"] = strings.ToUpper(p.Values["currency"])
	place, err := h.CellOf(p.Values["subject"])
	if err != nil && p.Values["scope"] == string(budget.Shop) {
		return err
	}
	set := func(amount money.Amount) error {
		return h.cells[place].Budgets.SetShop(r.Context(), shell.Actor(r), subject, p.Values["currency"], amount, p.Values["reason"])
	}
	if p.Values["scope"] == string(budget.Drop) {
		t, place, err := h.template(r, subject)
		if err != nil {
			return err
		}
		p.Values["currency"] = t.Currency
		set = func(amount money.Amount) error {
			return h.cells[place].Budgets.SetDrop(r.Context(), shell.Actor(r), t.ID, amount, p.Values["reason"])
		}
	}
	if p.Values["scope"] == string(budget.Campaign) {
		t, place, err := h.givenBy(r, subject)
		if err != nil {
			return err
		}
		p.Values["currency"] = t.Currency
		set = func(amount money.Amount) error {
			return h.cells[place].Budgets.SetCampaign(r.Context(), shell.Actor(r), subject, amount, p.Values["reason"])
		}
	}
	amount := rd.Amount("amount", p.Values["currency"])
	if p.Errors = rd.Broken.List; len(p.Errors) == 0 {
		err := set(amount)
		switch {
		case err == nil:
			return h.Done(w, r, "/budgets", ui.Good, shell.Say(r, "budgets.saved"))
		case fault.KindOf(err) == fault.Conflict:
			p.Error = ui.FaultText(r.Context(), err)
			return h.drawBudgets(w, r, http.StatusConflict, p)
		}
		if p.Errors = shell.FieldsOf(err); len(p.Errors) == 0 {
			return err
		}
	}
	return h.drawBudgets(w, r, http.StatusUnprocessableEntity, p)
}

// budgetConcerns are the budgets of which 80 % or all is used.
func (h *handlers) budgetConcerns(r *http.Request) (list []droppages.Attention, err error) {
	all, err := h.Budgets.Budgets(r.Context(), shell.Actor(r))
	for _, b := range all {
		switch b.Level() {
		case budget.UsedUp:
			list = append(list, droppages.Attention{Tone: ui.Bad, URL: "/budgets", Text: shell.Say(r, "attention.budget_used_up", b.Name)})
		case budget.Near:
			list = append(list, droppages.Attention{Tone: ui.Warn, URL: "/budgets", Text: shell.Say(r, "attention.budget_near", b.Name, fmt.Sprint(b.Share()/10))})
		}
	}
	return list, err
}
