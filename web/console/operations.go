package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (c *Console) listDeadMessages(w http.ResponseWriter, r *http.Request) error {
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64) // nonsense is the beginning
	list, err := c.DeadMessages.Open(r.Context(), max(0, before), shell.PageSize+1)
	if err != nil {
		return err
	}
	p := workpages.DeadMessages{List: list[:min(len(list), shell.PageSize)]}
	if len(list) > shell.PageSize {
		p.Next = shell.WithQuery(r, "before", strconv.FormatInt(p.List[shell.PageSize-1].ID, 10))
	}
	if before > 0 {
		p.First = shell.WithQuery(r, "before", "")
	}
	return c.Show(w, r, http.StatusOK, p.Page())
}

func (c *Console) deadMessageQuestion(r *http.Request, id int64) pageparts.Confirmation {
	step, kind := r.PathValue("step"), "primary"
	if step == "discard" {
		kind = "danger"
	}
	return pageparts.Confirmation{Active: "dead_messages", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.dead_messages"), URL: "/dead-messages"}},
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "confirm."+step+".title"), Points: []string{shell.Say(r, "confirm."+step+".1")}, NoReason: true,
			Action: fmt.Sprintf("/dead-messages/%d/%s", id, step), Cancel: "/dead-messages", Submit: shell.Say(r, "dead."+step), Kind: kind}}
}

func (c *Console) confirmDeadMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	return c.Ask(w, r, http.StatusOK, c.deadMessageQuestion(r, id))
}

func (c *Console) settleDeadMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	settle, text := c.DeadMessages.Discard, "dead.discarded_now"
	if r.PathValue("step") == "requeue" {
		settle, text = c.DeadMessages.Requeue, "dead.requeued_now"
	}
	err = settle(r.Context(), shell.Actor(r), id)
	if fault.KindOf(err) == fault.Invalid || fault.KindOf(err) == fault.NotFound {
		p := c.deadMessageQuestion(r, id)
		p.Error = ui.FaultText(r.Context(), err)
		return c.Ask(w, r, http.StatusConflict, p)
	}
	if err != nil {
		return err
	}
	return c.Done(w, r, "/dead-messages", ui.Good, shell.Say(r, text))
}

func (c *Console) listShops(w http.ResponseWriter, r *http.Request) error {
	list, err := c.ShopsOf(r)
	if err != nil {
		return err
	}
	return c.Show(w, r, http.StatusOK, droppages.Shops{List: list}.Page())
}

func (c *Console) newShop(w http.ResponseWriter, r *http.Request) error {
	zone := c.DefaultZone.String()
	return c.Show(w, r, http.StatusOK, droppages.ShopForm{New: true, Values: map[string]string{"timezone": zone}, Zones: shell.Zones(zone)}.Page())
}

func (c *Console) shop(r *http.Request) (template.Shop, error) {
	number, err := shell.PathID(r)
	if err != nil {
		return template.Shop{}, err
	}
	list, err := c.ShopsOf(r)
	for _, s := range list {
		if s.Number == number {
			return s, shell.Actor(r).May(staff.ManageTemplates, number)
		}
	}
	if err == nil {
		err = shell.ErrNoPage
	}
	return template.Shop{}, err
}

func (c *Console) editShop(w http.ResponseWriter, r *http.Request) error {
	s, err := c.shop(r)
	if err != nil {
		return err
	}
	f := droppages.ShopForm{Zones: shell.Zones(s.Timezone), Was: s.Shown(), Values: map[string]string{
		"shop_number": strconv.FormatInt(s.Number, 10), "name": s.Name, "timezone": s.Timezone}}
	if shell.Actor(r).Can(staff.ManageStaff, s.Number) {
		limits, err := c.limitsForm(r, s.Number, s.Name)
		if err != nil {
			return err
		}
		f.Limits = &limits
	}
	return c.Show(w, r, http.StatusOK, f.Page())
}

func (c *Console) createShop(w http.ResponseWriter, r *http.Request) error {
	s, f := typedShop(r)
	all, err := c.Shops.Shops(r.Context())
	if err != nil {
		return err
	}
	f.New = true
	for _, old := range all {
		if old.Number == s.Number {
			f.Errors = append(f.Errors, fault.Field{Name: "shop_number", Key: "rule.shop_exists", Message: shell.TimeMessages("rule.shop_exists")})
		}
	}
	if s.Number <= 0 {
		f.Errors = append(f.Errors, fault.Field{Name: "shop_number", Key: "rule.shop_number", Message: "must be a positive number"})
	}
	return c.keepShop(w, r, s, f)
}

func (c *Console) saveShop(w http.ResponseWriter, r *http.Request) error {
	old, err := c.shop(r)
	if err != nil {
		return err
	}
	s, f := typedShop(r)
	s.Number, f.Values["shop_number"], f.Was = old.Number, strconv.FormatInt(old.Number, 10), old.Shown()
	if both := shell.Merge(r, f.Values, f.Was); len(both) > 0 {
		f.Errors, f.Zones = append(f.Errors, both...), shell.Zones(s.Timezone)
		return c.Show(w, r, http.StatusConflict, f.Page())
	}
	s.Name, s.Timezone = f.Values["name"], f.Values["timezone"]
	return c.keepShop(w, r, s, f)
}

func (c *Console) keepShop(w http.ResponseWriter, r *http.Request, s template.Shop, f droppages.ShopForm) error {
	if len(f.Errors) > 0 {
		f.Zones = shell.Zones(s.Timezone)
		return c.Show(w, r, http.StatusUnprocessableEntity, f.Page())
	}
	if err := shell.Actor(r).May(staff.ManageTemplates, s.Number); err != nil {
		return err
	}
	err := c.Shops.ChangeShop(r.Context(), s, staff.Entry{Actor: shell.Actor(r), Action: "shop.save", ObjectKind: "shop",
		ObjectID: strconv.FormatInt(s.Number, 10), ShopNumber: s.Number})
	if err != nil {
		return err
	}
	return c.Done(w, r, "/shops", ui.Good, shell.Say(r, "shops.saved", s.Name))
}

func typedShop(r *http.Request) (template.Shop, droppages.ShopForm) {
	f := droppages.ShopForm{Values: map[string]string{}}
	for _, name := range []string{"shop_number", "name", "timezone"} {
		f.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	number, _ := strconv.ParseInt(shell.Narrow(f.Values["shop_number"]), 10, 64)
	e := &fault.Fields{}
	_, err := template.ShopName(f.Values["name"])
	e.List = shell.FieldsOf(err)
	if !user.ValidZone(f.Values["timezone"]) {
		e.Add("timezone", "rule.timezone", "must be a time zone such as Asia/Shanghai")
	}
	f.Errors = e.List
	return template.Shop{Number: number, Name: f.Values["name"], Timezone: f.Values["timezone"]}, f
}
