package shop

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"dropbell/sdk/go/api"
)

// Register names the shop and finds its newest drop. It registers the webhook address anew,
// since the secret of an endpoint is shown only once.
func (s *Shop) Register(ctx context.Context) error {
	if _, err := s.client.PutShopWithResponse(ctx, Number, api.ShopWish{Name: "一叶一壶 · Leaf & Kettle", Timezone: "Asia/Shanghai"}); err != nil {
		return err
	}
	shop, order, limit := Number, api.Desc, int64(20)
	drops, err := s.client.ListTemplatesWithResponse(ctx, &api.ListTemplatesParams{Shop: &shop, Order: &order, Limit: &limit,
		State: &[]api.ListTemplatesParamsState{api.ListTemplatesParamsStateScheduled, api.ListTemplatesParamsStateOpen}})
	if err != nil {
		return err
	}
	if drops.JSON200 == nil {
		return fmt.Errorf("the list of drops came as %s", drops.HTTPResponse.Header.Get("Content-Type"))
	}
	for _, d := range drops.JSON200.Templates { // the latest opening first; the shop's number may have drops of other origin
		if d.Name == DropName || d.Name == drawName {
			s.know(d.Id, d.Name == drawName)
		}
	}
	return s.registerHooks(ctx)
}

// know takes a drop for the page, unless a newer one is known.
func (s *Shop) know(id string, drawn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if drawn && s.draw == "" {
		s.draw = id
	} else if !drawn && s.drop == "" {
		s.drop = id
	}
}

func (s *Shop) setDrop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop = id
}

// opensIn are the choices of the page for a new drop: "reminder" leaves time for all steps from
// the reminder on, "soon" for the claim alone.
var opensIn = map[string]time.Duration{"reminder": 7 * time.Minute, "soon": 2 * time.Minute}

// openDrop adds a drop, or with in=now moves the newest drop's opening to ten seconds from now.
func (s *Shop) openDrop(w http.ResponseWriter, r *http.Request) {
	var err error
	if d, ok := opensIn[r.FormValue("in")]; ok {
		err = s.AddDrop(r.Context(), d)
	} else {
		err = s.Move(r.Context(), 10*time.Second)
	}
	to := "/"
	if err != nil {
		s.config.Log.Warn("the demo shop's drop", "err", err)
		to = "/?error=" + url.QueryEscape(err.Error())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// DropName is the name of the shop's drops, by which the shop knows them again.
const DropName = "春茶立减 20 元 · ¥20 off spring tea"

// AddDrop publishes a drop that opens after d.
func (s *Shop) AddDrop(ctx context.Context, d time.Duration) error {
	opens, off, limit, valid := s.client.Clock.Now().Add(d).Truncate(time.Second), int64(2000), int64(1), int64(48)
	claim := s.address + "/"
	draft, err := s.client.CreateTemplateWithResponse(ctx, nil, api.TemplateWish{ShopNumber: Number, Name: DropName, Kind: "amount_off",
		AmountOff: &off, Currency: "CNY", Stock: 50, PerUserLimit: &limit, OpensAt: opens, ClosesAt: opens.Add(2 * time.Hour), ValidHours: &valid, ClaimUrl: &claim,
		StackGroup: new("leaf"), StacksWith: &[]string{"leaf"}}) // coupons of several drops of the shop go together
	if err != nil {
		return err
	}
	if _, err := s.client.PublishTemplateWithResponse(ctx, draft.JSON201.Id, nil, api.Reason{}); err != nil {
		return err
	}
	s.setDrop(draft.JSON201.Id)
	return nil
}

// Move lets the newest drop open after d, or adds a drop if there is none to move.
func (s *Shop) Move(ctx context.Context, d time.Duration) error {
	s.mu.Lock()
	id := s.drop
	s.mu.Unlock()
	if id == "" {
		return s.AddDrop(ctx, d)
	}
	t, err := s.client.GetAdminTemplateWithResponse(ctx, id)
	if err != nil {
		return err
	}
	if t.JSON200.State != "scheduled" {
		return s.AddDrop(ctx, d)
	}
	opens, once, version := s.client.Clock.Now().Add(d).Truncate(time.Second), true, fmt.Sprintf(`"%d"`, t.JSON200.Version)
	_, err = s.client.ChangeTemplateWithResponse(ctx, id, &api.ChangeTemplateParams{IfMatch: &version}, api.TemplatePatch{OpensAt: &opens, RemindOnce: &once})
	return err
}
