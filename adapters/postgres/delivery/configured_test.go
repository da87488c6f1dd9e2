package delivery_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func providerBox(t *testing.T, keys ...string) *seal.Box {
	t.Helper()
	box, err := seal.New(provider.SealPurpose, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func twilioInput() provider.Input {
	return provider.Input{Kind: provider.Twilio, Spec: provider.Spec{Name: "Main", Weight: 2, Order: 1, Countries: []string{"de", "CN"}, Enabled: true,
		Settings: map[string]string{"key_id": "AC1", "from": "+4915207770123"}},
		Secrets: map[string]string{"key_secret": "very secret token"}}
}

// TestSecretsOfProvidersAreSealed: the row does not contain the plain secrets, and another key
// does not open them. An empty form field keeps a secret. A deleted provider has no secrets.
func TestSecretsOfProvidersAreSealed(t *testing.T) {
	w := newFixture(t)
	store := deliverydb.NewConfigured(w.DB)
	s := &provider.Service{Store: store, Box: providerBox(t, "key one"), Keyed: true, IsCountry: func(c string) bool { return len(c) == 2 }}
	by := staff.System()
	p, err := s.Create(t.Context(), by, twilioInput(), "once")
	w.Must(err)
	again, err := s.Create(t.Context(), by, twilioInput(), "once")
	if w.Must(err); again.ID != p.ID {
		t.Errorf("the form that was sent twice made providers %d and %d", p.ID, again.ID)
	}
	var row []byte
	var text, audit string
	w.Must(w.DB.Pool.QueryRow(t.Context(), `select secrets, p::text, (select string_agg(a::text, ' ') from audit a) from providers p`).Scan(&row, &text, &audit))
	if bytes.Contains(row, []byte("secret token")) || strings.Contains(text, "secret token") || strings.Contains(audit, "secret token") || !strings.Contains(audit, "provider.create") {
		t.Errorf("a secret can be read: %s\n%s", text, audit)
	}
	if got, err := p.Open(s.Box); err != nil || got["key_secret"] != "very secret token" || !p.Has("key_secret") || !slices.Equal(p.Countries, []string{"CN", "DE"}) {
		t.Errorf("%v, %v, %+v", got, err, p)
	}
	in := twilioInput()
	in.Name, in.Secrets = "Renamed", nil
	other := &provider.Service{Store: store, Box: providerBox(t, "key two"), Keyed: true, IsCountry: s.IsCountry}
	if _, err := other.Change(t.Context(), by, p.ID, p.Version, in); !errors.Is(err, provider.ErrSealed) || !strings.Contains(err.Error(), "PROVIDERS_KEY") {
		t.Errorf("with another key: %v", err)
	}
	p2, err := s.Change(t.Context(), by, p.ID, p.Version, in)
	w.Must(err)
	if got, err := p2.Open(s.Box); err != nil || got["key_secret"] != "very secret token" || p2.Name != "Renamed" {
		t.Errorf("after a change without secrets: %v, %v", got, err)
	}
	if _, err := s.Change(t.Context(), by, p.ID, p.Version, in); !errors.Is(err, fault.ErrStale) {
		t.Errorf("a stale form: %v", err)
	}
	elsewhere := twilioInput()
	elsewhere.Secrets, elsewhere.Settings["url"] = nil, "https://collector.example"
	_, err = s.Change(t.Context(), by, p.ID, p2.Version, elsewhere)
	if f, ok := errors.AsType[*fault.Fields](err); !ok || f.List[0].Name != "key_secret" || f.List[0].Key != "rule.provider_secret_again" {
		t.Errorf("a secret may be sent to another server: %v", err)
	}
	if err := s.Delete(t.Context(), by, p.ID, p2.Version); !errors.Is(err, provider.ErrInUse) {
		t.Errorf("an enabled provider was deleted: %v", err)
	}
	p3, err := s.Switch(t.Context(), by, p.ID, false)
	w.Must(err)
	before, err := store.State(t.Context())
	w.Must(err)
	w.Must(s.Delete(t.Context(), by, p.ID, p3.Version))
	after, err := store.State(t.Context())
	if w.Must(err); after == before {
		t.Error("workers do not see that a provider was deleted")
	}
	var kept string
	w.Must(w.DB.Pool.QueryRow(t.Context(), `select name from providers where secrets is null and settings = '{}'`).Scan(&kept))
	if _, err := s.Provider(t.Context(), by, p.ID); !errors.Is(err, provider.ErrNotFound) || kept != "Renamed" {
		t.Errorf("%v, %q is kept", err, kept)
	}
}

// TestASecretThatNoKeyOpens: such a secret can be replaced, and left out if it is not
// required.
func TestASecretThatNoKeyOpens(t *testing.T) {
	w := newFixture(t)
	s := &provider.Service{Store: deliverydb.NewConfigured(w.DB), Box: providerBox(t, "key one"), Keyed: true}
	in := provider.Input{Kind: provider.SMTP, Spec: provider.Spec{Name: "Mail", Weight: 1,
		Settings: map[string]string{"url": "smtp://mail.example"}},
		Secrets: map[string]string{"password": "secret"}}
	p, err := s.Create(t.Context(), staff.System(), in, "")
	w.Must(err)
	s.Box = providerBox(t, "key two")
	in.Secrets, in.Clear = nil, []string{"password"}
	p, err = s.Change(t.Context(), staff.System(), p.ID, p.Version, in)
	w.Must(err)
	if got, err := p.Open(s.Box); err != nil || len(got) != 0 || len(p.Secrets) != 0 {
		t.Errorf("%v, %v, %v", got, err, p.Secrets)
	}
}

// TestASecretOfAnotherProvider: a secret that was sealed for another provider is refused like
// a secret whose key is missing, by staff's form and by the programs that send.
func TestASecretOfAnotherProvider(t *testing.T) {
	w := newFixture(t)
	s := &provider.Service{Store: deliverydb.NewConfigured(w.DB), Box: providerBox(t, "key one"), Keyed: true, IsCountry: func(string) bool { return true }}
	one, err := s.Create(t.Context(), staff.System(), twilioInput(), "")
	w.Must(err)
	two, err := s.Create(t.Context(), staff.System(), twilioInput(), "")
	w.Must(err)
	w.Exec(`update providers set secrets = (select secrets from providers where id = $1) where id = $2`, one.ID, two.ID)
	for id, want := range map[int64]error{one.ID: nil, two.ID: provider.ErrSealed} {
		p, err := s.Provider(t.Context(), staff.System(), id)
		w.Must(err)
		if _, err := p.Open(s.Box); !errors.Is(err, want) || s.Readable(p) != (want == nil) {
			t.Errorf("provider %d of %d, %d: %v", id, one.ID, two.ID, err)
		}
		in := twilioInput()
		in.Name, in.Secrets = "Renamed", nil
		if _, err := s.Change(t.Context(), staff.System(), id, p.Version, in); !errors.Is(err, want) {
			t.Errorf("a change of provider %d: %v", id, err)
		}
	}
}

// TestProvidersThatCannotBeStored: each mistake is named. Without a key no secret is stored.
func TestProvidersThatCannotBeStored(t *testing.T) {
	w := newFixture(t)
	s := &provider.Service{Store: deliverydb.NewConfigured(w.DB), Box: providerBox(t), IsCountry: func(c string) bool { return c == "DE" }}
	if _, err := s.Create(t.Context(), staff.System(), func() provider.Input { in := twilioInput(); in.Countries = nil; return in }(), ""); !errors.Is(err, provider.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	for field, spoil := range map[string]func(*provider.Input){
		"name": func(in *provider.Input) { in.Name = " " }, "weight": func(in *provider.Input) { in.Weight = 0 }, "order": func(in *provider.Input) { in.Order = -1 },
		"countries": func(in *provider.Input) { in.Countries = []string{"XX"} }, "kind": func(in *provider.Input) { in.Kind = "pigeon" },
		"from": func(in *provider.Input) { in.Settings["from"] = "" }, "key_secret": func(in *provider.Input) { in.Secrets = nil },
		"shop_number": func(in *provider.Input) { in.Shop = -1 },
		"url":         func(in *provider.Input) { in.Settings["url"] = "https://user:password@sms.example.com" },
	} {
		in := twilioInput()
		in.Countries = []string{"DE"}
		spoil(&in)
		_, err := s.Create(t.Context(), staff.System(), in, "")
		f, ok := errors.AsType[*fault.Fields](err)
		if !ok || !slices.ContainsFunc(f.List, func(f fault.Field) bool { return f.Name == field }) {
			t.Errorf("%s: %v", field, err)
		}
	}
	s.Keyed, s.Box = true, providerBox(t, "key")
	in := twilioInput()
	in.Shop, in.Countries = 999_999, nil
	if _, err := s.Create(t.Context(), staff.System(), in, ""); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a shop that does not exist: %v", err)
	}
	shop := staff.Actor{Label: "staff:2", Role: staff.Operator, Shops: []int64{10}}
	if _, err := s.List(t.Context(), shop); !errors.Is(err, staff.ErrEveryShop) {
		t.Errorf("a member of one shop: %v", err)
	}
}

// TestOutcomesNameTheirProvider: outcomes name their provider, whichever providers took part
// in a batch. This includes messages that a worker had handed over before it died.
func TestOutcomesNameTheirProvider(t *testing.T) {
	w := newFixture(t)
	for name, store := range w.stores() {
		t.Run(name, func(t *testing.T) {
			w.Exec(`truncate batches, exceptions, outbox, accepted_messages, providers cascade`)
			w.Exec(`insert into providers (id, channel, kind, name, enabled, changed, created_by) overriding system value
				values (11, 0, 'json', 'First', true, 1, 'x'), (12, 0, 'json', 'Second', true, 2, 'x')`)
			w.ready(1, time.Hour)
			l, err := store.LeaseNext(t.Context(), delivery.App, time.Minute)
			w.Must(err)
			ids := l.Batch().Left
			_, err = l.Checkpoint(t.Context(), delivery.Progress{Sent: ids[:3], Via: map[user.ID]int64{ids[0]: 11, ids[1]: 12},
				Exceptions: []delivery.Exception{{UserID: ids[4], Outcome: delivery.Dead, Reason: "x", Via: 12, FirstAt: time.Now(), LastAt: time.Now()}}})
			w.Must(err)
			w.Must(l.Accepted(t.Context(), ids[3], 11))
			w.Exec(`update batches set lease_until = now() - interval '2 seconds', next_run_at = now() - interval '1 second'`)
			_, err = w.Batches.TakeBack(t.Context())
			w.Must(err)
			l, err = store.LeaseNext(t.Context(), delivery.App, time.Minute)
			w.Must(err)
			b := l.Batch()
			if !slices.Equal(b.Accepted, ids[3:4]) || b.AcceptedVia[ids[3]] != 11 {
				t.Fatalf("accepted %v through %v", b.Accepted, b.AcceptedVia)
			}
			_, err = l.Checkpoint(t.Context(), delivery.Progress{Sent: b.Accepted, Via: b.AcceptedVia, Rest: delivery.Skipped, RestReason: "x", Done: true})
			w.Must(err)
			list, err := deliverydb.NewLedger(w.DB).Recipients(t.Context(), delivery.RecipientQuery{BatchID: b.ID})
			w.Must(err)
			got := map[user.ID]string{}
			for _, r := range list {
				got[r.UserID] = r.Provider
			}
			for i, want := range []string{"First", "Second", "", "First", "Second"} {
				if got[ids[i]] != want {
					t.Errorf("recipient %d: %q, want %q", i, got[ids[i]], want)
				}
			}
			row, err := deliverydb.NewLedger(w.DB).Batch(t.Context(), b.ID)
			if w.Must(err); !slices.Equal(row.Providers, []delivery.ProviderShare{{Name: "First", Sent: 2}, {Name: "Second", Sent: 1}}) {
				t.Errorf("%+v", row.Providers)
			}
		})
	}
}

// TestABatchOfOneProviderNeedsNoSet: a finished batch whose messages one provider accepted
// stores no set, and its outcomes still name the provider.
func TestABatchOfOneProviderNeedsNoSet(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into providers (id, channel, kind, name, enabled, changed, created_by) overriding system value values (11, 0, 'json', 'First', true, 1, 'x')`)
	w.ready(1, time.Hour)
	l, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	via := map[user.ID]int64{}
	for _, id := range l.Batch().Left {
		via[id] = 11
	}
	_, err = l.Checkpoint(t.Context(), delivery.Progress{Sent: l.Batch().Left, Via: via, Done: true})
	w.Must(err)
	if n := w.Number(`select count(*) from batch_providers where users is null and sent_count = $1`, len(via)); n != 1 {
		t.Errorf("%d rows without a set", n)
	}
	list, err := deliverydb.NewLedger(w.DB).Recipients(t.Context(), delivery.RecipientQuery{BatchID: l.Batch().ID, Limit: 1})
	if w.Must(err); list[0].Provider != "First" {
		t.Errorf("%+v", list[0])
	}
}
