package program

import (
	"log/slog"
	"slices"
	"testing"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

// TestSendersOfMailsAreThoseOfTheViewersShops: the page Mail domain shows the environment's mail
// server and the mail servers for all shops. Of servers for one shop it shows only those of the
// viewer's shops.
func TestSendersOfMailsAreThoseOfTheViewersShops(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "SMTP_URL": "smtp://relay.example:25?from=a@environment.example",
		"PROVIDERS_KEY": "a key with at least thirty-two bytes"}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	if _, err := p.DB.Pool.Exec(t.Context(), `insert into shops (number, name, timezone) values (10, 'Tea House', 'UTC'), (11, 'Coffee House', 'UTC') on conflict do nothing`); err != nil {
		t.Fatal(err)
	}
	for shop, from := range map[int64]string{0: "common.example", 10: "tea.example", 11: "coffee.example"} {
		in := provider.Input{Shop: shop, Kind: provider.SMTP, Spec: provider.Spec{Name: from, Order: 1, Weight: 1, Enabled: true,
			Settings: map[string]string{"url": "smtp://mail." + from + ":25?from=a@" + from}}}
		if _, err := p.providers.Create(t.Context(), staff.System(), in, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		shops []int64
		want  []string
	}{
		{[]int64{11}, []string{"coffee.example", "common.example", "environment.example"}},
		{[]int64{10, 11}, []string{"coffee.example", "common.example", "environment.example", "tea.example"}},
		{nil, []string{"coffee.example", "common.example", "environment.example", "tea.example"}},
	} {
		senders, err := p.mailCheck().Senders(t.Context(), staff.Member{ID: 7, Role: staff.Viewer, Shops: c.shops}.Actor())
		musttest.OK(t, err)
		var got []string
		for _, s := range senders {
			got = append(got, s.From)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("a viewer of the shops %v sees %q, want %q", c.shops, got, c.want)
		}
	}
}
