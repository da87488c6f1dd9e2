package campaigns_test

import (
	"strings"
	"testing"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
)

func TestCampaignSearch(t *testing.T) {
	w := newFixture(t)
	for _, name := range []string{"Spring 50% off", "spring_tea", "春节 letter", "4"} {
		w.Insert("campaigns", pgtest.Row{"name": name})
	}
	store := campaignsdb.NewCampaigns(w.DB, w.Segments)
	for search, want := range map[string]string{"SPRING": "spring_tea,Spring 50% off", "春": "春节 letter", "春节 l": "春节 letter", "0%": "Spring 50% off", "g_t": "spring_tea",
		"4": "4", "65": "spring_tea", "\x00": "", "\xff": "", strings.Repeat("x", 100_000): "", "%%": "", "none": ""} {
		list, err := store.Campaigns(t.Context(), campaign.Query{Search: search, Limit: 10})
		w.Must(err)
		var names []string
		for _, c := range list {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%.20q finds %q, want %q", search, got, want)
		}
	}
}
