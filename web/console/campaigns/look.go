package campaigns

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/web/console/shell"
)

// typedCampaign returns the typed values without surrounding spaces. stored is the content that the
// form was filled in from.
func typedCampaign(r *http.Request, stored delivery.Copy) map[string]string {
	v := map[string]string{}
	for _, name := range campaignFields() {
		v[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	typedLanguages(r, v, stored)
	v["grant_template_id"] = shell.TemplateRef(v["grant_template_id"])
	if campaignpages.OfTemplate(v["audience"]) && v["audience_template"] != "" {
		v["audience_value"] = shell.TemplateRef(v["audience_template"])
	}
	delete(v, "audience_template")                                 // see nameTemplates
	if kind, id, named := strings.Cut(v["audience"], ":"); named { // a segment, chosen by its name
		v["audience"], v["audience_value"] = kind, id
	}
	return v
}

// previewCampaign answers the form as typed so far: the users it reaches, its cost, its
// texts, and the errors.
func (h *handlers) previewCampaign(w http.ResponseWriter, r *http.Request) error {
	shops, err := h.AllShopsOf(r)
	if err != nil {
		return err
	}
	f := campaignpages.CampaignForm{Values: typedCampaign(r, delivery.Copy{}), Shops: shops}
	f.Shown, f.ShownB = r.PostFormValue(campaignpages.ShownLanguage), r.PostFormValue(campaignpages.ShownLanguageB)
	f.ID, _ = strconv.ParseInt(r.PostFormValue(campaignpages.EditedField), 10, 64) // without one it is a new campaign
	earlierForm(r, f.Values, delivery.Copy{})
	if err := h.choosePictures(r, &f); err != nil {
		return err
	}
	f.Replanned = h.replan(r, f.Values, shops)
	spec, broken := h.readCampaign(r, f.Values, shops)
	if f.ID != 0 && len(h.cells) > 1 { // a draft stays in its database
		_, err := h.Campaigns.Campaign(r.Context(), shell.Actor(r), f.ID)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			broken.Add("shop", "rule.unknown_shop", "is in another database than the campaign")
		case err != nil:
			return err
		}
	}
	if f.Errors, err = h.campaignFaults(r, f.Values, spec, broken); err != nil {
		return err
	}
	if err := h.completeCampaignForm(r, &f); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, f.Checked())
}

// campaignFaults joins the values that could not be read with the broken rules of the other values,
// in the order of the form. A field is named once.
func (h *handlers) campaignFaults(r *http.Request, v map[string]string, spec campaign.Spec, broken *fault.Fields) ([]fault.Field, error) {
	list := slices.Clone(broken.List)
	if !spec.EndsAt.IsZero() && !spec.EndsAt.After(h.Now()) {
		list = append(list, fault.Field{Name: "ends_at", Key: "rule.ends_ahead", Message: "must lie in the future"})
	}
	fields, err := h.Campaigns.Check(r.Context(), shell.Actor(r), spec)
	switch {
	case errors.Is(err, staff.ErrForbidden) && spec.Shop == 0:
		fields = append(fields, fault.Field{Name: "shop", Key: "rule.own_shop", Message: "choose one of your shops"})
	case err != nil:
		return nil, err
	}
	for _, f := range typedFields(fields, v) {
		if !slices.ContainsFunc(list, func(g fault.Field) bool { return g.Name == f.Name }) {
			list = append(list, f)
		}
	}
	shell.InOrder(list, inOrder(v))
	return list, nil
}

// completeCampaignForm adds the choices of the form, and the reach, cost and texts that its values
// lead to.
func (h *handlers) completeCampaignForm(r *http.Request, f *campaignpages.CampaignForm) (err error) {
	if f.Shops == nil {
		if f.Shops, err = h.ShopsOf(r); err != nil {
			return err
		}
	}
	f.Channels, f.Kinds = h.Channels.Set(), h.Campaigns.Audiences
	spec, _ := h.readCampaign(r, f.Values, f.Shops)
	if f.Segments, err = h.segmentsOffered(r, spec.Audience); err != nil {
		return err
	}
	f.Spec, f.Zone = spec, h.zoneOf(spec.Shop, f.Shops)
	ctx, by := r.Context(), shell.Actor(r)
	if n, exact, err := h.Campaigns.Estimate(ctx, by, spec.Audience); err == nil {
		f.Reach = &campaign.Reach{Users: n, Exact: exact, At: h.Now()}
	} else if fault.KindOf(err) == 0 {
		return err
	}
	if n, exact, err := h.Campaigns.Estimate(ctx, by, campaign.Audience{Kind: campaign.Everybody}); err == nil {
		f.Everybody = &campaign.Reach{Users: n, Exact: exact, At: h.Now()}
	} else if fault.KindOf(err) == 0 {
		return err
	}
	if f.Reach != nil {
		if err := h.countReaders(r, f, spec.Audience); err != nil {
			return err
		}
		if f.Reaches, err = h.Campaigns.Reaches(ctx, by, spec.Audience, h.VerifiedOnly); err != nil && fault.KindOf(err) == 0 {
			return err
		}
	}
	if by.May(staff.View, spec.Shop) == nil {
		above, err := h.Campaigns.ApprovalAbove(ctx, by, spec.Shop)
		if err != nil {
			return err
		}
		f.ApprovalAbove = above
	}
	about, err := shell.VisibleTemplate(r, h.Templates, spec.TemplateID())
	if err != nil {
		return err
	}
	if campaignpages.OfTemplate(f.Values["audience"]) {
		if f.About, err = shell.VisibleTemplate(r, h.Templates, spec.Audience.ID); err != nil {
			return err
		}
	}
	if about == nil { // nothing of another shop's template is shown
		spec.GrantTemplate, spec.Audience = 0, campaign.Audience{}
	} else if spec.GrantTemplate != 0 {
		f.Grant = about
	}
	if err := h.completeTexts(r, f, spec, about); err != nil {
		return err
	}
	return h.countTexts(r, f)
}

// countTexts adds how many users would get a text message, if a price is shown. If the number of
// verified phone numbers cannot be estimated, it is the whole reach.
func (h *handlers) countTexts(r *http.Request, f *campaignpages.CampaignForm) error {
	if f.Reach == nil || !f.Priced() {
		return nil
	}
	if f.Texts = f.Reach.Users; !h.VerifiedOnly {
		return nil
	}
	verified, err := h.Campaigns.EstimateVerified(r.Context(), shell.Actor(r), f.Spec.Audience)
	switch {
	case err == nil:
		f.Texts = min(f.Texts, verified)
	case fault.KindOf(err) == 0:
		return err
	}
	return nil
}

// completeTexts adds the previews of the messages. If a button asks for it, it also sends one of
// them to the member.
func (h *handlers) completeTexts(r *http.Request, f *campaignpages.CampaignForm, spec campaign.Spec, about *template.Template) error {
	c := campaign.Campaign{Spec: spec}
	if about != nil && c.Shop == 0 { // as when it is saved
		c.Shop = about.ShopNumber
	}
	if i := slices.IndexFunc(f.Shops, func(s template.Shop) bool { return s.Number == c.Shop }); i >= 0 {
		c.ShopName, c.ShopTimezone = f.Shops[i].Name, f.Shops[i].Timezone
	}
	s, err := h.sendingOf(r, c)
	if err != nil {
		return err
	}
	if f.Previews, err = h.texts(r, s); err != nil {
		return err
	}
	f.Previews.Form, f.Previews.Action = campaignpages.FormID, f.Action()
	if r.PostFormValue("send") == "" {
		return nil
	}
	return h.try(r, s, &f.Previews)
}
