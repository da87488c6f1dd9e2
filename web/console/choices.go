package console

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
)

// choicesShown is how many names a field for templates offers.
const choicesShown = 10

// chooseTemplate answers a field for templates with what its text may mean.
func (c *Console) chooseTemplate(w http.ResponseWriter, r *http.Request) error {
	typed := ""
	for _, name := range []string{"q", "grant_template_id", "audience_template"} {
		if typed = strings.TrimSpace(r.FormValue(name)); typed != "" {
			break
		}
	}
	q := template.Query{Search: typed}
	if id, err := strconv.ParseInt(templateRef(typed), 10, 64); err == nil && templateRef(typed) != typed { // a name that was chosen
		q = template.Query{IDs: []int64{id}}
	}
	list, _, err := c.inPhases(r, phases(q, c.Now()), 0, template.Cursor{}, choicesShown)
	if err != nil {
		return err
	}
	return c.Show(w, r, http.StatusOK, campaignpages.TemplateChoices(list).Part())
}

var numberAtEnd = regexp.MustCompile(`^(?:.*\(#|#)?([0-9]{1,19})\)?$`)

// templateRef returns the number in what stands in a field for templates: a
// number, or a name with its number. Other text stays as it is.
func templateRef(typed string) string {
	if m := numberAtEnd.FindStringSubmatch(strings.TrimSpace(typed)); m != nil {
		return m[1]
	}
	return typed
}

// nameTemplates writes the names of templates into the form's fields for them.
func (c *Console) nameTemplates(r *http.Request, f *campaignpages.CampaignForm) error {
	named := func(typed string) (string, error) {
		id, err := strconv.ParseInt(typed, 10, 64)
		if err != nil {
			return typed, nil
		}
		t, err := c.visibleTemplate(r, id)
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
