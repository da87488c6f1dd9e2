package campaigns_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestBudgetOfACampaign: the page of a campaign that gives coupons leads to the form of its budget,
// in the currency of the drop. Campaigns without coupons have none.
func TestBudgetOfACampaign(t *testing.T) {
	g := consoletest.New(t)
	tea := g.Published(10, 3*time.Hour)
	b := g.As(staff.Admin)
	made := func(fields ...string) (page, id string) {
		page = b.Post("/campaigns", consoletest.CampaignForm(fields...)).Is(http.StatusSeeOther).Header.Get("Location")
		return page, strings.TrimPrefix(page, "/campaigns/")
	}
	page, id := made("grant_template_id", fmt.Sprint(tea.ID))
	address := "/budgets?scope=campaign&subject=" + id
	b.Get(page).Is(http.StatusOK).Has(strings.ReplaceAll(address, "&", "&amp;"))
	b.Get(address).Is(http.StatusOK).Has(`name="scope" value="campaign"`).HasNot(`name="currency"`)
	form := url.Values{"scope": {"campaign"}, "subject": {id}, "amount": {"50"}}
	b.Post("/budgets", form).Is(http.StatusUnprocessableEntity).Has("say why")
	form.Set("reason", "as planned")
	b.Post("/budgets", form).Is(http.StatusSeeOther)
	b.Get("/budgets").Is(http.StatusOK).Has(`href="`+page+`"`, "¥50")
	plain, other := made("name", "Without coupons")
	b.Get(plain).Is(http.StatusOK).HasNot("scope=campaign")
	form.Set("subject", other)
	b.Post("/budgets", form).Is(http.StatusConflict)
}
