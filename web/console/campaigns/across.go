package campaigns

import (
	"net/http"
	"strconv"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/web/console/shell"
)

// at returns the handlers of the database that has the drop, or the shop, that a form names.
func (h *handlers) at(r *http.Request, values map[string]string) (*handlers, error) {
	if len(h.cells) == 1 {
		return h, nil
	}
	drops := []string{values["grant_template_id"]}
	if campaignpages.OfTemplate(values["audience"]) {
		drops = append(drops, values["audience_value"])
	}
	for _, typed := range drops {
		id, bad := strconv.ParseInt(shell.Narrow(typed), 10, 64)
		if bad != nil {
			continue
		}
		_, place, err := shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (template.Template, error) {
			return h.Templates.Template(r.Context(), shell.Actor(r), id)
		})
		switch fault.KindOf(err) {
		case fault.NotFound, fault.Denied: // the form says so
		default:
			return h.cells[place], err
		}
	}
	place, err := h.CellOf(values["shop"])
	return h.cells[place], err
}

// formAt serves a form with the handlers of the database that has its drop or its shop.
func (h *handlers) formAt(serve func(*handlers, http.ResponseWriter, *http.Request) error) shell.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		of, err := h.at(r, typedCampaign(r, delivery.Copy{}))
		if err != nil {
			return err
		}
		return serve(of, w, r)
	}
}

// modelOf returns the campaign that the new campaign copies; without a model the ID is 0.
func (h *handlers) modelOf(r *http.Request) (campaign.Campaign, error) {
	id, err := strconv.ParseInt(r.FormValue("from"), 10, 64)
	if err != nil {
		return campaign.Campaign{}, nil
	}
	st, _, err := shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (campaign.Status, error) {
		return h.Campaigns.Campaign(r.Context(), shell.Actor(r), id)
	})
	return st.Campaign, err
}
