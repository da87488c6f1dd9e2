package drops_test

import (
	"testing"

	dropsdb "dropbell/adapters/postgres/drops"
)

// TestSharesOfMailDomains: the shares are of users with a mail address, ignoring
// case, without subdomains. For many users the shares are estimated from a
// sample.
func TestSharesOfMailDomains(t *testing.T) {
	w := newFixture(t)
	forecasts := dropsdb.NewForecasts(w.DB)
	read := func() map[string]float64 {
		t.Helper()
		got, err := forecasts.MailShares(t.Context(), []string{"qq.com", "gmail.com", "163.com"})
		w.Must(err)
		return got
	}
	if got := read(); len(got) != 0 {
		t.Errorf("without users %v", got)
	}
	w.Exec(`insert into users (id, email) select n, case n % 5 when 0 then '' when 1 then 'u' || n || '@QQ.com' when 2 then 'u' || n || '@gmail.com' when 3 then 'u' || n || '@sub.qq.com'
		else 'u' || n || '@shop.example' end from generate_series(1, 60000) n`)
	if got := read(); len(got) != 2 || got["qq.com"] != 0.25 || got["gmail.com"] != 0.25 {
		t.Errorf("%v", got)
	}
	// Before the table is analyzed, the number of users is unknown.
	w.Exec(`insert into users (id, name) select n, repeat('x', 1500) from generate_series(60001, 75000) n`)
	if percent, err := forecasts.SamplePercent(t.Context(), 20_000); err != nil || percent > 60 || percent < 20 {
		t.Errorf("%f %% of users that are not analyzed, %v", percent, err)
	}
	w.Exec(`analyze users`)
	if got := read(); len(got) != 2 || got["qq.com"] < 0.22 || got["qq.com"] > 0.28 || got["gmail.com"] < 0.22 || got["gmail.com"] > 0.28 {
		t.Errorf("from a sample %v", got)
	}
}
