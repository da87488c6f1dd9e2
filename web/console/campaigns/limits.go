package campaigns

import (
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// Limits serves the form of the limits of one shop's campaigns.
type Limits struct{ Campaigns *campaign.Service }

// limits returns the form of the limits of shops.
func (h *handlers) limits() Limits { return Limits{h.Campaigns} }

// limitsOf is the form of the shop in the address; 0 = campaigns of no shop.
func (h *handlers) limitsOf(r *http.Request) (droppages.ShopLimits, error) {
	if r.PathValue("id") == "0" {
		return h.limits().Form(r, 0, "")
	}
	s, err := h.Shop(r)
	if err != nil {
		return droppages.ShopLimits{}, err
	}
	return h.limits().Form(r, s.Number, s.Name)
}

// Form returns the form of the limits of the shop, with its name. It requires the permission to
// manage staff of that shop. Shop 0 is the shop of campaigns without a shop.
func (s Limits) Form(r *http.Request, shop int64, name string) (droppages.ShopLimits, error) {
	by := shell.Actor(r)
	if err := by.May(staff.ManageStaff, shop); err != nil {
		return droppages.ShopLimits{}, err
	}
	if shop == 0 {
		if err := by.MayEverywhere(staff.ManageStaff); err != nil {
			return droppages.ShopLimits{}, err
		}
	}
	l, err := s.Campaigns.Limits(r.Context(), by, shop)
	values := droppages.LimitValues(l)
	return droppages.ShopLimits{Shop: shop, Name: name, Values: values, Was: values}, err
}

func (h *handlers) showLimits(w http.ResponseWriter, r *http.Request, p droppages.ShopLimits) error {
	return h.Show(w, r, http.StatusOK, p.Page())
}

// readLimits reads the fields whose names begin with prefix; an empty field is 0.
func readLimits(r *http.Request, prefix string) (campaign.Limits, map[string]string, []fault.Field) {
	values := map[string]string{}
	for name := range droppages.LimitValues(campaign.Limits{}) {
		if values[name] = strings.TrimSpace(r.PostFormValue(prefix + name)); values[name] == "" {
			values[name] = "0"
		}
	}
	rd := &shell.Reading{Values: values}
	number := func(name string) int64 {
		n := rd.Number(name)
		if n >= math.MaxInt32 {
			rd.Broken.Add(name, "rule.most", "must be at most %d", math.MaxInt32-1)
		}
		return n
	}
	l := campaign.Limits{PerDay: int(number("per_day")), PerWeek: int(number("per_week")), ApprovalAbove: number("approval_above")}
	return l, values, rd.Broken.List
}

func (h *handlers) saveLimits(w http.ResponseWriter, r *http.Request) error {
	p, err := h.limitsOf(r)
	if err != nil {
		return err
	}
	was, shown, unread := readLimits(r, "was_")
	l, typed, broken := readLimits(r, "")
	p.Values = typed
	if len(broken) == 0 && len(unread) == 0 {
		err = h.Campaigns.SetLimits(r.Context(), shell.Actor(r), p.Shop, &was, l)
		if errors.Is(err, fault.ErrStale) {
			// p.Was is the present state: a member who sends the form again confirms the change.
			p.Errors = changedLimits(p.Was, shown)
			return h.Show(w, r, http.StatusConflict, p.Page())
		}
		broken = shell.FieldsOf(err)
	}
	if broken = append(broken, unread...); len(broken) > 0 {
		p.Was, p.Errors = shown, broken
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	if err != nil {
		return err
	}
	to := "/shops"
	if p.Shop != 0 {
		to += "/" + strconv.FormatInt(p.Shop, 10)
	}
	return h.Done(w, r, to, ui.Good, shell.Say(r, "limits.saved"))
}

// changedLimits returns the fields that were changed concurrently, with their stored values.
func changedLimits(now, shown map[string]string) []fault.Field {
	e := &fault.Fields{}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != shown[name] {
			e.Add(name, "rule.changed_to", "somebody has changed this to %s meanwhile; send the form again to overwrite it", now[name])
		}
	}
	return e.List
}
