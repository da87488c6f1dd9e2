package campaigns

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

// campaignFields are the inputs of the form.
func campaignFields() []string {
	return []string{"name", "shop", "audience", "audience_template", "audience_value", "channel", "title", "body", "link", "title_b", "body_b",
		"percent_b", "test_share", "test_by", "test_minutes", "test_early", "hold_out", "grant_template_id", "starts_at", "ends_at", "rate_per_second"}
}

// inOrder returns the inputs of the form that have values, including the inputs of further
// languages, in the order of the form.
func inOrder(v map[string]string) (list []string) {
	languages := campaignpages.Languages(v)
	for _, name := range campaignFields() {
		list = append(list, name)
		for i := range languages {
			switch name {
			case "body":
				list = append(list, campaignpages.LanguageField(i, campaignpages.LanguageTag), campaignpages.LanguageField(i, campaignpages.LanguageTitle),
					campaignpages.LanguageField(i, campaignpages.LanguageBody))
			case "body_b":
				list = append(list, campaignpages.LanguageField(i, campaignpages.LanguageTitleB), campaignpages.LanguageField(i, campaignpages.LanguageBodyB))
			}
		}
	}
	return list
}

func (h *handlers) newCampaign(w http.ResponseWriter, r *http.Request) error {
	f := campaignpages.CampaignForm{RequestKey: rand.Text(), Values: map[string]string{"channel": delivery.App.String(), "test_by": delivery.ByOpened, "test_minutes": "240"}}
	shops, err := h.AllShopsOf(r)
	if err != nil {
		return err
	}
	f.Shops = shops
	model, err := h.modelOf(r)
	if err != nil {
		return err
	}
	from, to, shop, zone, err := h.plannedStart(r, shops)
	if err != nil {
		return err
	}
	if model.ID != 0 {
		f.From, f.Values = model.ID, h.campaignValues(model)
		shop, zone = model.Shop, h.ShopZone(model.ShopTimezone)
		to = from.Add(model.EndsAt.Sub(model.StartsAt)) // at another time, for as long
	}
	f.Values["starts_at"], _ = shell.TypedTime(from, zone)
	f.Values["ends_at"], _ = shell.TypedTime(to, zone)
	if shop != 0 {
		f.Values["shop"] = strconv.FormatInt(shop, 10)
	}
	for name, planned := range plannedTimes() {
		f.Values[planned] = f.Values[name]
	}
	f.Values[plannedShop] = f.Values["shop"]
	of, err := h.at(r, f.Values)
	if err != nil {
		return err
	}
	return of.showCampaignForm(w, r, http.StatusOK, f)
}

func (h *handlers) createCampaign(w http.ResponseWriter, r *http.Request) error {
	model, err := h.modelOf(r)
	if err != nil {
		return err
	}
	return h.keepCampaign(w, r, campaignpages.CampaignForm{From: model.ID}, model.Content, func(spec campaign.Spec) (campaign.Campaign, error) {
		return h.Campaigns.Create(r.Context(), shell.Actor(r), spec, shell.CreationKey(r))
	})
}

func (h *handlers) editCampaign(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	f := campaignpages.CampaignForm{ID: st.ID, Version: st.Version, Values: h.campaignValues(st.Campaign)}
	return h.showCampaignForm(w, r, http.StatusOK, f)
}

func (h *handlers) loadDraft(r *http.Request) (campaign.Status, error) {
	st, err := h.loadCampaign(r)
	if err == nil && st.State != campaign.Draft {
		err = campaign.ErrTransition.Told("fault.campaign_is." + string(st.State))
	}
	return st, err
}

func (h *handlers) saveCampaign(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	return h.keepCampaign(w, r, campaignpages.CampaignForm{ID: st.ID, Version: version}, st.Content, func(spec campaign.Spec) (campaign.Campaign, error) {
		return h.Campaigns.Edit(r.Context(), shell.Actor(r), st.ID, version, spec)
	})
}

// keepCampaign reads the form and saves it, shows it again with its errors, or does the action of
// another button: a preview, adding or removing a language, sending a text to the member. before is
// the content that the form was filled in from.
func (h *handlers) keepCampaign(w http.ResponseWriter, r *http.Request, f campaignpages.CampaignForm, before delivery.Copy, keep func(campaign.Spec) (campaign.Campaign, error)) error {
	offered := h.AllShopsOf
	if f.ID != 0 { // a draft stays in its database
		offered = h.ShopsOf
	}
	shops, err := offered(r)
	if err != nil {
		return err
	}
	f.RequestKey, f.Values, f.Shops = r.PostFormValue("request_key"), typedCampaign(r, before), shops
	f.Shown, f.ShownB = r.PostFormValue(campaignpages.ShownLanguage), r.PostFormValue(campaignpages.ShownLanguageB)
	h.replan(r, f.Values, shops)
	earlier := earlierForm(r, f.Values, before)
	if err := h.choosePictures(r, &f); err != nil {
		return err
	}
	if r.PostFormValue("again") != "" {
		return h.showCampaignForm(w, r, http.StatusOK, f)
	}
	if do := r.PostFormValue("blocks"); do != "" {
		changeBlocks(f.Values, do)
		return h.showCampaignForm(w, r, http.StatusOK, f)
	}
	if do := r.PostFormValue("languages"); do != "" {
		return h.languagesChanged(w, r, f, do)
	}
	spec, broken := h.readCampaign(r, f.Values, shops)
	if earlier {
		broken.Add(campaignpages.LanguageField(0, campaignpages.LanguageTag), "rule.earlier_form", "this form was opened before an upgrade; check the texts in all languages and save again")
	}
	wrong, err := h.campaignFaults(r, f.Values, spec, broken)
	switch {
	case errors.Is(err, staff.ErrForbidden): // of another shop; to keep it says so
	case err != nil:
		return err
	case r.PostFormValue("look")+r.PostFormValue("send") != "":
		f.Looked, f.Errors = true, wrong
		return h.showCampaignForm(w, r, http.StatusOK, f)
	case len(wrong) > 0:
		f.Errors = wrong
		return h.showCampaignForm(w, r, http.StatusUnprocessableEntity, f)
	}
	kept, err := keep(spec)
	switch {
	case errors.Is(err, fault.ErrStale):
		return h.showCampaignConflict(w, r, f)
	case shell.FieldsOf(err) != nil:
		f.Errors = typedFields(shell.FieldsOf(err), f.Values)
		return h.showCampaignForm(w, r, http.StatusUnprocessableEntity, f)
	case err != nil:
		return err
	}
	return h.kept(w, r, kept)
}

// showCampaignConflict shows both versions side by side.
func (h *handlers) showCampaignConflict(w http.ResponseWriter, r *http.Request, mine campaignpages.CampaignForm) error {
	st, err := h.loadDraft(r)
	if err != nil {
		return err
	}
	p := pageparts.Conflict{Mine: mine, Theirs: h.campaignValues(st.Campaign), Version: st.Version}
	aligned(p.Theirs, mine.Values, st.Content)
	if p.Who, err = shell.LastChangedBy(r, h.Audit, "campaign", st.ID); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusConflict, p.Page())
}

// typedFields names the inputs that the broken rules are about.
func typedFields(list []fault.Field, v map[string]string) []fault.Field {
	tags := campaignpages.Tags(v)
	for i, f := range list {
		switch {
		case f.Name == "audience."+string(campaign.Reserved), f.Name == "audience."+string(campaign.Holds):
			list[i].Name = "audience_template"
		case f.Name == "audience."+string(campaign.Segment), f.Name == "audience."+string(campaign.List):
			list[i].Name = "audience"
		case strings.HasPrefix(f.Name, "audience."):
			list[i].Name = "audience_value"
		case f.Name == "shop_number":
			list[i].Name = "shop"
		case f.Name == "percent", f.Name == "variants":
			list[i].Name = "percent_b"
		default:
			list[i].Name = typedField(f, tags)
		}
	}
	return list
}

// mostSegments is how many segments, the last changed first, the form names.
const mostSegments = 100

// segmentsOffered returns the segments that the form names, among them the chosen one.
func (h *handlers) segmentsOffered(r *http.Request, chosen campaign.Audience) ([]segment.Segment, error) {
	if h.Segments == nil {
		return nil, nil
	}
	list, err := h.Segments.Segments(r.Context(), shell.Actor(r), segment.Query{Limit: mostSegments})
	if err != nil || chosen.Kind != campaign.Segment && chosen.Kind != campaign.List || slices.ContainsFunc(list, func(s segment.Segment) bool { return s.ID == chosen.ID }) {
		return list, err
	}
	s, err := h.Segments.Segment(r.Context(), shell.Actor(r), chosen.ID)
	if fault.KindOf(err) != 0 { // it does not exist, or is not shown to the member
		return list, nil
	}
	return append(list, s), err
}

func (h *handlers) showCampaignForm(w http.ResponseWriter, r *http.Request, status int, f campaignpages.CampaignForm) error {
	if err := h.choosePictures(r, &f); err != nil {
		return err
	}
	if err := h.completeCampaignForm(r, &f); err != nil {
		return err
	}
	if err := h.nameTemplates(r, &f); err != nil {
		return err
	}
	f.Title = shell.Say(r, "campaign.new_title")
	if f.ID != 0 {
		f.Title = shell.Say(r, "campaign.edit_title", f.Values["name"])
	}
	if r.PostFormValue("send") != "" && shell.Partial(r) {
		return h.Show(w, r, status, f.Checked())
	}
	return h.Show(w, r, status, f.Page())
}

func (h *handlers) campaignValues(cp campaign.Campaign) map[string]string {
	zone := h.ShopZone(cp.ShopTimezone)
	first := cp.Content.Variants[0].Texts
	v := map[string]string{"name": cp.Name, "audience": string(cp.Audience.Kind), "channel": cp.Channel.String(),
		"title": first[""].Title, "body": first[""].Body}
	languageValues(v, cp.Content, nil)
	v["starts_at"], _ = shell.TypedTime(cp.StartsAt, zone)
	v["ends_at"], _ = shell.TypedTime(cp.EndsAt, zone)
	number := func(name string, n int64) {
		if n != 0 {
			v[name] = strconv.FormatInt(n, 10)
		}
	}
	number("shop", cp.Shop)
	number("audience_value", cp.Audience.ID)
	number("grant_template_id", cp.GrantTemplate)
	number("rate_per_second", int64(cp.RatePerSecond))
	number("hold_out", int64(cp.Content.HoldOut))
	v["link"], v["test_by"], v["test_minutes"] = cp.Content.Link, delivery.ByOpened, "240"
	if t := cp.Content.Test; t != nil {
		number("test_share", int64(t.Share))
		number("test_minutes", int64(t.Minutes))
		if v["test_by"] = t.By; t.Early {
			v["test_early"] = "1"
		}
	}
	campaignpages.SetBlocks(v, campaignpages.TextPlaceOf(0, -1), first[""].Blocks)
	if cp.Audience.Kind == campaign.Named {
		ids := make([]string, len(cp.Audience.Users))
		for i, id := range cp.Audience.Users {
			ids[i] = id.String()
		}
		v["audience_value"] = strings.Join(ids, " ")
	}
	if len(cp.Content.Variants) > 1 {
		b := cp.Content.Variants[1]
		v["title_b"], v["body_b"] = b.Texts[""].Title, b.Texts[""].Body
		campaignpages.SetBlocks(v, campaignpages.TextPlaceOf(1, -1), b.Texts[""].Blocks)
		number("percent_b", int64(b.Percent))
	}
	return v
}

// readCampaign reads the typed form; unreadable fields are in broken.
func (h *handlers) readCampaign(r *http.Request, v map[string]string, shops []template.Shop) (s campaign.Spec, broken *fault.Fields) {
	broken = &fault.Fields{}
	number := func(name string) int64 {
		if v[name] == "" {
			return 0
		}
		n, err := strconv.ParseInt(shell.Narrow(v[name]), 10, 64)
		if err != nil && name == "grant_template_id" {
			broken.Add(name, "rule.template_choice", "choose a template, or type its number")
		} else if err != nil && !errors.Is(err, strconv.ErrRange) || n < 0 {
			broken.Add(name, "rule.number", "must be a whole number")
		}
		return n
	}
	s = campaign.Spec{Name: v["name"], Shop: number("shop"), GrantTemplate: number("grant_template_id"), RatePerSecond: int(min(number("rate_per_second"), campaign.MaxRate+1))}
	channel, err := delivery.ParseChannel(v["channel"])
	if err != nil {
		broken.Add("channel", "rule.channel", "choose one")
	}
	s.Channel = channel
	rd := &shell.Reading{Values: v, Zone: h.zoneOf(s.Shop, shops)}
	s.StartsAt, s.EndsAt = rd.When("starts_at"), rd.When("ends_at")
	broken.List = append(broken.List, rd.Broken.List...)
	s.Audience = h.readAudience(r, v, broken)
	s.Content = readCopy(v, int(min(number("percent_b"), 1000)), int(min(number("hold_out"), 1000)), broken)
	s.Content.Link = v["link"]
	if v["test_share"] != "" {
		s.Content.Test = &delivery.Test{Share: int(min(number("test_share"), 1000)), By: v["test_by"], Minutes: int(min(number("test_minutes"), 1<<30)), Early: v["test_early"] != ""}
	}
	return s, broken
}

// zoneOf returns the zone of one of the shops; without a shop it returns the console's zone.
func (h *handlers) zoneOf(number int64, shops []template.Shop) *time.Location {
	if i := slices.IndexFunc(shops, func(s template.Shop) bool { return s.Number == number }); i >= 0 {
		return h.ShopZone(shops[i].Timezone)
	}
	return h.DefaultZone
}

func (h *handlers) readAudience(r *http.Request, v map[string]string, broken *fault.Fields) campaign.Audience {
	a := campaign.Audience{Kind: campaign.AudienceKind(v["audience"])}
	if campaignpages.OfTemplate(v["audience"]) {
		id, err := strconv.ParseInt(shell.Narrow(v["audience_value"]), 10, 64)
		if err != nil && v["audience_value"] != "" {
			broken.Add("audience_template", "rule.template_choice", "choose a template, or type its number")
		}
		a.ID = id
		return a
	}
	if a.Kind == campaign.Segment || a.Kind == campaign.List {
		a.ID = h.Named(r, shell.Segments, "audience", v["audience_value"], broken)
		return a
	}
	words := strings.FieldsFunc(v["audience_value"], func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n，；", r) })
	for _, word := range words {
		id, err := user.ParseID(shell.Narrow(word))
		if err != nil {
			cut := []rune(word)
			broken.Add("audience_value", "rule.user_number", "%q is not a number", string(cut[:min(len(cut), 40)]))
			break
		}
		if a.Kind == campaign.Named {
			a.Users = append(a.Users, id)
		}
	}
	return a
}

// nameTemplates writes the names of templates into the form's fields for them.
func (h *handlers) nameTemplates(r *http.Request, f *campaignpages.CampaignForm) error {
	named := func(typed string) (string, error) {
		id, err := strconv.ParseInt(typed, 10, 64)
		if err != nil {
			return typed, nil
		}
		t, err := shell.VisibleTemplate(r, h.Templates, id)
		if err != nil || t == nil {
			return typed, err
		}
		return campaignpages.TemplateName(*t), nil
	}
	var err error
	if f.Values["grant_template_id"], err = named(f.Values["grant_template_id"]); err != nil || !campaignpages.OfTemplate(f.Values["audience"]) {
		return err
	}
	f.Values["audience_template"], err = named(f.Values["audience_value"])
	f.Values["audience_value"] = ""
	return err
}
