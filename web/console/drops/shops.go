package drops

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listShops(w http.ResponseWriter, r *http.Request, list []template.Shop) error {
	return h.Show(w, r, http.StatusOK, droppages.Shops{List: list}.Page())
}

func (h *handlers) newShop(w http.ResponseWriter, r *http.Request) error {
	zone := h.DefaultZone.String()
	return h.Show(w, r, http.StatusOK, droppages.ShopForm{New: true, Values: map[string]string{"timezone": zone}, Zones: shell.Zones(zone)}.Page())
}

func (h *handlers) editShop(w http.ResponseWriter, r *http.Request) error {
	s, err := h.Shop(r)
	if err != nil {
		return err
	}
	f := droppages.ShopForm{Zones: shell.Zones(s.Timezone), Was: s.Shown(), Values: map[string]string{
		"shop_number": strconv.FormatInt(s.Number, 10), "name": s.Name, "timezone": s.Timezone, "claim_url": s.ClaimURL}}
	if shell.Actor(r).Can(staff.ManageStaff, s.Number) {
		limits, err := h.Limits.Form(r, s.Number, s.Name)
		if err != nil {
			return err
		}
		f.Limits = &limits
	}
	return h.Show(w, r, http.StatusOK, f.Page())
}

func (h *handlers) createShop(w http.ResponseWriter, r *http.Request) error {
	s, f := typedShop(r)
	f.New = true
	if s.Number <= 0 {
		f.Errors = append(f.Errors, fault.Field{Name: "shop_number", Key: "rule.shop_number", Message: "must be a positive number"})
	}
	if len(f.Errors) > 0 {
		return h.keepShop(w, r, s, f)
	}
	if err := shell.Actor(r).May(staff.ManageTemplates, s.Number); err != nil {
		return err
	}
	return h.Settling(r, s.Number, func(place int) error {
		of := h.cells[place]
		all, err := of.Shops.Shops(r.Context())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(old template.Shop) bool { return old.Number == s.Number }) {
			f.Errors = append(f.Errors, fault.Field{Name: "shop_number", Key: "rule.shop_exists", Message: shell.TimeMessages("rule.shop_exists")})
		}
		return of.keepShop(w, r, s, f)
	})
}

func (h *handlers) saveShop(w http.ResponseWriter, r *http.Request, old template.Shop) error {
	s, f := typedShop(r)
	s.Number, f.Values["shop_number"], f.Was = old.Number, strconv.FormatInt(old.Number, 10), old.Shown()
	if both := shell.Merge(r, f.Values, f.Was); len(both) > 0 {
		f.Errors, f.Zones = append(f.Errors, both...), shell.Zones(s.Timezone)
		return h.Show(w, r, http.StatusConflict, f.Page())
	}
	s.Name, s.Timezone, s.ClaimURL = f.Values["name"], f.Values["timezone"], f.Values["claim_url"]
	return h.keepShop(w, r, s, f)
}

func (h *handlers) keepShop(w http.ResponseWriter, r *http.Request, s template.Shop, f droppages.ShopForm) error {
	if len(f.Errors) > 0 {
		f.Zones = shell.Zones(s.Timezone)
		return h.Show(w, r, http.StatusUnprocessableEntity, f.Page())
	}
	if err := shell.Actor(r).May(staff.ManageTemplates, s.Number); err != nil {
		return err
	}
	err := h.Shops.ChangeShop(r.Context(), s, staff.Entry{Actor: shell.Actor(r), Action: "shop.save", ObjectKind: "shop",
		ObjectID: strconv.FormatInt(s.Number, 10), ShopNumber: s.Number})
	if err != nil {
		return err
	}
	return h.Done(w, r, "/shops", ui.Good, shell.Say(r, "shops.saved", s.Name))
}

func typedShop(r *http.Request) (template.Shop, droppages.ShopForm) {
	f := droppages.ShopForm{Values: map[string]string{}}
	for _, name := range []string{"shop_number", "name", "timezone", "claim_url"} {
		f.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	number, _ := strconv.ParseInt(shell.Narrow(f.Values["shop_number"]), 10, 64)
	e := &fault.Fields{}
	_, err := template.ShopName(f.Values["name"])
	e.List = shell.FieldsOf(err)
	if !user.ValidZone(f.Values["timezone"]) {
		e.Add("timezone", "rule.timezone", "must be a time zone such as Asia/Shanghai")
	}
	template.CheckClaimURL(e, f.Values["claim_url"])
	f.Errors = e.List
	return template.Shop{Number: number, Name: f.Values["name"], Timezone: f.Values["timezone"], ClaimURL: f.Values["claim_url"]}, f
}

// Shops keeps the shops.
type Shops interface {
	Shops(ctx context.Context) ([]template.Shop, error)
	// ChangeShop creates the shop or changes its name and time zone. The audit entry e gets the
	// values before and after.
	ChangeShop(ctx context.Context, shop template.Shop, e staff.Entry) error
}

// exportShops sends the shops that the viewer may see.
func (h *handlers) exportShops(w http.ResponseWriter, r *http.Request, list []template.Shop) error {
	if len(shell.Frame(r).Silent) > 0 {
		return shell.ErrSilent
	}
	return shell.FileOf("shops", []string{"shop_number", "name", "timezone"}, func(s template.Shop) []any {
		return []any{s.Number, s.Name, s.Timezone}
	}).Send(h.Shell, w, r, shell.Each(list))
}
