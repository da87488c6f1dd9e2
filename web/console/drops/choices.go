package drops

import (
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/web/console/shell"
)

// choicesShown is how many names a field for templates offers.
const choicesShown = 10

// chooseTemplate answers a field for templates with the templates that its text may mean.
func (h *handlers) chooseTemplate(w http.ResponseWriter, r *http.Request) error {
	typed := ""
	for _, name := range []string{"q", "grant_template_id", "audience_template"} {
		if typed = strings.TrimSpace(r.FormValue(name)); typed != "" {
			break
		}
	}
	q := template.Query{Search: typed}
	if id, err := strconv.ParseInt(shell.TemplateRef(typed), 10, 64); err == nil && shell.TemplateRef(typed) != typed { // a name that was chosen
		q = template.Query{IDs: []int64{id}}
	}
	rows, err := h.phased(r, phases(q, h.Now()), nil).Read("", choicesShown)
	if err != nil {
		return err
	}
	var list campaignpages.TemplateChoices
	for _, found := range rows {
		row, of := found.Row, h.cells[found.Cell]
		c := campaignpages.TemplateChoice{Template: row.Template}
		if r.Form.Has("audience_template") {
			c.Reserved, c.Holds = of.users(r, campaign.Reserved, row.ID), of.users(r, campaign.Holds, row.ID)
		}
		list = append(list, c)
	}
	return h.Show(w, r, http.StatusOK, list.Part())
}

// users returns about how many users the audience of the template has; nil if that is not known or
// not told to the member.
func (h *handlers) users(r *http.Request, kind campaign.AudienceKind, template int64) *int64 {
	n, _, err := h.Audiences.Estimate(r.Context(), shell.Actor(r), campaign.Audience{Kind: kind, ID: template})
	if err != nil {
		return nil
	}
	return &n
}
