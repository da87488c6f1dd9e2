package past

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/argon2"
	accessdb "dropbell/adapters/postgres/access"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
)

// MarketerEmail is the second member of the demo, a marketer of shop 20, with the demo's password.
const MarketerEmail = "lin@dropbell.test"

func idText(id int64) string { return strconv.FormatInt(id, 10) }

// storePeople stores the second shop and member, gives the users a past, and suppresses the mail
// addresses of some.
func (h *history) storePeople(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `insert into shops (number, name, timezone) values (10, '茶馆 · Tea House', 'Asia/Shanghai'), (20, '一叶一壶 · Leaf & Kettle', 'Asia/Shanghai')
		on conflict (number) do nothing`); err != nil {
		return err
	}
	hash, err := argon2.New(1).Hash(ctx, staff.DemoPassword)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into staff (email, name, role, shops, password_hash, locale, created_at, updated_at)
		values ($1, 'Lin Yue', 'marketer', '{20}', $2, 'zh-CN', $3, $3) on conflict (lower(email)) do nothing`, MarketerEmail, hash, h.now.AddDate(0, 0, -52)); err != nil {
		return err
	}
	// The number of users has grown ever faster for a year and a half, and every eleventh has the app on a phone.
	if _, err := tx.Exec(ctx, `update users set created_at = $3::timestamptz - (id % 97) * (id % 97) * interval '87 minutes' - (id % 50) * interval '23 minutes',
			devices = case when id % 11 = 0 then jsonb_build_array(jsonb_build_object('platform', 'android', 'token', 'demo-phone-' || id, 'app_version', '2.4', 'locale', locale,
				'seen_at', to_char($3::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))) else devices end
		where id between $1 and $2`, h.First, h.Last, h.now); err != nil {
		return err
	}
	rows := &table{name: "suppressions", columns: []string{"address", "reason", "provider", "cause", "since", "released_at"}}
	if err := h.readPeople(ctx, tx); err != nil {
		return err
	}
	for i, p := range h.people {
		since, ok := h.suppressedSince(p)
		if !ok {
			continue
		}
		var released *time.Time
		if i%5 == 4 {
			at := since.AddDate(0, 0, 3)
			released = &at
		}
		why := [...][3]string{{"bounced", "ses", "550 5.1.1 user unknown"}, {"complained", "ses", "abuse report"}, {"soft_bounced", "ses", "552 5.2.2 mailbox full"}, {"staff", "", "asked by telephone"}}[p.id/163%4]
		rows.add(p.email, why[0], why[1], why[2], since, released)
	}
	return store(ctx, tx, rows)
}

// suppressedSince returns since when nothing is sent to the person's mail address.
func (h *history) suppressedSince(p person) (time.Time, bool) {
	return h.now.AddDate(0, 0, -int(p.id%41)-10), p.id%163 == 7
}

// member returns the member who looks after the drop's shop, as in the audit log.
func (d *made) member() string {
	if d.ShopNumber == 20 {
		return d.marketer
	}
	return d.admin
}

// readStaff reads the two members.
func (h *history) readStaff(ctx context.Context) error {
	list, err := accessdb.NewStaff(h.db).Members(ctx)
	for _, m := range list {
		a := m.Actor()
		if label := a.Label + " " + a.Name; m.Email == MarketerEmail {
			h.marketer = label
		} else if h.admin == "" {
			h.admin, h.actor = label, a
		}
	}
	return err
}

// providerKey is the request key of the provider that fails.
const providerKey = "demo: provider"

// storeProvider configures a provider of SMS that does not answer. It serves countries of which
// the demo has no customer.
func (h *history) storeProvider(ctx context.Context, _ pgx.Tx) error {
	box, err := seal.New(provider.SealPurpose, h.ProvidersKeys...)
	if err != nil {
		return err
	}
	if err := h.readStaff(ctx); err != nil {
		return err
	}
	s := provider.Service{Store: deliverydb.NewConfigured(h.db), Box: box, Keyed: box.Keyed(), Check: func(provider.Provider, map[string]string) error { return nil },
		IsCountry: func(string) bool { return true }}
	_, err = s.Create(ctx, h.actor, provider.Input{Kind: provider.JSON, Spec: provider.Spec{Name: "Backup gateway", Order: 1, Weight: 1, Countries: []string{"HK", "MO"}, Enabled: true,
		Settings: map[string]string{"url": "http://127.0.0.1:9/sms"}}, Secrets: map[string]string{"token": "demo"}}, providerKey)
	return err
}

// testProvider asks a worker for test messages through the provider, so that its page shows how
// it does: the workers know the provider by now.
func (h *history) testProvider(ctx context.Context, tx pgx.Tx) error {
	t := testmessage.ChannelTest{Channel: delivery.SMS, Recipient: "+85255501000", CreatedBy: h.admin}
	if err := tx.QueryRow(ctx, `select id from providers where request_key = $1`, providerKey).Scan(&t.Provider); err != nil {
		return err
	}
	for range testmessage.TestsPerMember / 2 {
		if _, err := deliverydb.NewChannelTests(h.db).CreateTest(ctx, t,
			staff.Entry{Actor: h.actor, Action: "channel.test", ObjectKind: "channel", ObjectID: delivery.SMS.String()}); err != nil {
			return err
		}
	}
	return nil
}

// storeAlerts stores the alerts of the past; each has ended.
func (h *history) storeAlerts(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `
		with demo as (
			select t.*, (select count(*) from exceptions e join batches b on b.id = e.batch_id where b.template_id = t.id and b.kind = 'reminder' and e.outcome = 'dead') as dead,
				(select max(issued_at) from coupons c where c.template_id = t.id) as last
			from templates t where t.request_key like 'demo: %'
		), told as (
			select 'channel' as kind, 'channel:sms' as key, 0::bigint as shop, 0::bigint as template, 'sms' as name, 0::bigint as count, '/channels' as path,
				opens_at - interval '28 minutes' as raised, opens_at + interval '64 minutes' as ended from demo where request_key = 'demo: supper'
			union all
			select 'channel', 'channel:email', 0, 0, 'email', 0, '/channels', opens_at - interval '24 minutes', opens_at + interval '9 minutes' from demo where request_key = 'demo: brunch'
			union all
			select 'dead_letters', 'dead_letters:template:' || id, shop_number, id, name, dead, '/dead-letters?template=' || id, opens_at - interval '3 minutes', opens_at + interval '2 days'
			from demo where dead > 20
			union all
			select 'sold_out', 'sold_out:' || id, shop_number, id, name, stock, '/templates/' || id, last, closes_at from demo where issued = stock
		)
		insert into alerts (kind, key, shop_number, template_id, name, count, path, raised_at, ended_at)
		select kind, key, shop, template, name, count, path, raised, ended from told order by raised`); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into alert_readers (staff_id, read_through) select s.id, (select coalesce(max(a.id), 0) from alerts a where a.raised_at < $1) from staff s
		on conflict do nothing`, h.now.AddDate(0, 0, -5))
	return err
}
