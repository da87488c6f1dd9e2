package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/domain/user"
)

// ChannelTests stores test messages.
type ChannelTests struct{ *pg.DB }

// NewChannelTests returns the test messages of db.
func NewChannelTests(db *pg.DB) ChannelTests { return ChannelTests{db} }

const testColumns = `c.id, c.channel, c.recipient, c.by_user, c.template_id, c.locale, c.draft, c.due_at, c.state, c.result, c.detail, c.took_ms,
	c.created_by, c.created_at, c.finished_at, c.provider_id`

func testFields(t *testmessage.ChannelTest, took *int64) []any {
	return []any{&t.ID, &t.Channel, &t.Recipient, &t.ByUser, &t.TemplateID, &t.Locale, &t.Draft, &t.DueAt, &t.State, &t.Result, &t.Detail, took,
		&t.CreatedBy, &t.CreatedAt, &t.FinishedAt, &t.Provider}
}

// CreateTest stores a test; see [testmessage.TestStore]. Concurrent requests wait
// for each other, so that no request passes the limits.
func (s ChannelTests) CreateTest(ctx context.Context, t testmessage.ChannelTest, e staff.Entry) (testmessage.ChannelTest, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if err := insertTest(ctx, tx, &t, e); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, event.ChannelTestCreated, event.ChannelTest{TestID: t.ID, Channel: int(t.Channel), At: t.CreatedAt})
	})
	return t, err
}

// BeginTest stores a test that the caller sends; see [testmessage.TestStore].
func (s ChannelTests) BeginTest(ctx context.Context, t testmessage.ChannelTest, e staff.Entry, lasting time.Duration) (taken testmessage.TakenTest, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := insertTest(ctx, tx, &t, e); err != nil {
			return err
		}
		taken, err = takeTest(ctx, tx, t.ID, lasting)
		return err
	})
	return taken, err
}

func insertTest(ctx context.Context, tx pgx.Tx, t *testmessage.ChannelTest, e staff.Entry) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('channel_tests'))`); err != nil {
		return err
	}
	if err := tooManyTests(ctx, tx, *t); err != nil {
		return err
	}
	var took int64
	err := tx.QueryRow(ctx, `
		insert into channel_tests as c (channel, recipient, by_user, template_id, locale, created_by, draft, provider_id, due_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, greatest(date_trunc('second', clock_timestamp()),
			(select max(due_at) + interval '1 second' from channel_tests o where o.channel = $1)))
		returning `+testColumns, t.Channel, t.Recipient, t.ByUser, t.TemplateID, t.Locale, t.CreatedBy, t.Draft, t.Provider).Scan(testFields(t, &took)...)
	if err != nil {
		return err
	}
	return pg.InsertAudit(ctx, tx, e)
}

func tooManyTests(ctx context.Context, tx pgx.Tx, t testmessage.ChannelTest) error {
	var mine, all int
	var wait time.Duration
	err := tx.QueryRow(ctx, `select count(*) filter (where created_by = $2), count(*) filter (where channel = $1),
			coalesce(min(created_at) + interval '1 minute' - clock_timestamp(), interval '0')
		from channel_tests where created_at > clock_timestamp() - interval '1 minute' and (created_by = $2 or channel = $1)`,
		t.Channel, t.CreatedBy).Scan(&mine, &all, &wait)
	if err == nil && (mine >= testmessage.TestsPerMember || all >= testmessage.TestsPerChannel) {
		return &fault.RetryAfter{Err: testmessage.ErrTooManyTests, After: max(wait, time.Second)}
	}
	return err
}

// Test returns one test; see [testmessage.TestStore].
func (s ChannelTests) Test(ctx context.Context, id int64) (t testmessage.ChannelTest, err error) {
	var took int64
	err = s.Pool.QueryRow(ctx, `select `+testColumns+` from channel_tests c where id = $1`, id).Scan(testFields(&t, &took)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, delivery.ErrNoWork
	}
	t.Took = time.Duration(took) * time.Millisecond
	return t, pg.Translate(err)
}

// Tests lists the channel's last tests, newest first.
func (s ChannelTests) Tests(ctx context.Context, c delivery.Channel, limit int) ([]testmessage.ChannelTest, error) {
	rows := pg.Rows(ctx, s.Pool, `select `+testColumns+` from channel_tests c where channel = $1 order by id desc limit $2`, c, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t testmessage.ChannelTest, err error) {
		var took int64
		err = row.Scan(testFields(&t, &took)...)
		t.Took = time.Duration(took) * time.Millisecond
		return t, err
	})
	return list, pg.Translate(err)
}

// TakeTest leases a waiting test with its content and recipient; see
// [testmessage.TestStore].
func (s ChannelTests) TakeTest(ctx context.Context, id int64, lasting time.Duration) (testmessage.TakenTest, error) {
	return takeTest(ctx, s.Pool, id, lasting)
}

func takeTest(ctx context.Context, q pg.Querier, id int64, lasting time.Duration) (testmessage.TakenTest, error) {
	t := testmessage.TakenTest{Token: uuid.NewString()}
	t.Subject.Kind = delivery.KindTest
	var took int64
	var to user.User
	var push, devices []byte
	var known bool
	fields := append(testFields(&t.ChannelTest, &took), &t.Subject.TemplateName, &t.Subject.ShopNumber, &t.Subject.ClaimURL,
		&t.Subject.OpensAt, &t.Subject.ShopName, &t.Subject.TextsUpTo)
	fields = append(append(fields, pg.SubjectFields(&t.Subject)...), &known, &to.Name, &to.Email, &to.Phone, &to.Locale, &to.Timezone, &push, &devices)
	err := q.QueryRow(ctx, `
		with c as (
			update channel_tests set state = 'running', token = $2, lease_until = clock_timestamp() + $3
			where id = $1 and state = 'waiting' returning *
		)
		select `+testColumns+`, coalesce(t.name, 'Dropbell'), coalesce(h.number::text, ''), `+pg.ClaimURL+`,
			coalesce(t.opens_at, '0001-01-01'), coalesce(h.name, ''), newest_message(), `+pg.SubjectColumns+`, u.id is not null, coalesce(u.name, ''), coalesce(u.email, ''), coalesce(u.phone, ''),
			coalesce(u.locale, ''), coalesce(u.timezone, ''), coalesce(u.push, '[]'), coalesce(u.devices, '[]')
		from c left join templates t on t.id = c.template_id left join shops h on h.number = coalesce(t.shop_number, (c.draft ->> 'shop')::bigint)
			left join users u on c.by_user and u.id = case when c.by_user then c.recipient::bigint end`, id, t.Token, lasting).
		Scan(fields...)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, delivery.ErrNoWork
	}
	if err != nil {
		return t, pg.Translate(err)
	}
	t.Subject.TemplateID, t.Subject.DueAt = t.TemplateID, t.DueAt
	return t, addressTest(&t, to, push, devices)
}

// addressTest fills in the recipient. The time zone of an address is unknown; its
// language is the language of the sending member.
func addressTest(t *testmessage.TakenTest, known user.User, push, devices []byte) error {
	if t.ByUser {
		id, err := user.ParseID(t.Recipient)
		if err != nil {
			return err
		}
		t.To, t.To.ID = known, id
		return errors.Join(json.Unmarshal(push, &t.To.Push), json.Unmarshal(devices, &t.To.Devices))
	}
	t.To = user.User{Locale: t.Locale}
	switch t.Channel {
	case delivery.Email:
		t.To.Email = t.Recipient
	case delivery.SMS:
		t.To.Phone = t.Recipient
	}
	return nil
}

// EndTest records the result and deletes the recipient.
func (s ChannelTests) EndTest(ctx context.Context, t testmessage.TakenTest) error {
	_, err := s.Pool.Exec(ctx, `update channel_tests set state = 'done', result = $3, detail = $4, took_ms = $5, finished_at = clock_timestamp(),
			recipient = '', draft = null, token = null, lease_until = null
		where id = $1 and token = $2 and state = 'running'`, t.ID, t.Token, t.Result, t.Detail, t.Took.Milliseconds())
	return pg.Translate(err)
}

// ChannelTestsWait asks for tests that are not done.
const ChannelTestsWait pg.Question = `select from channel_tests where state <> 'done' order by id limit 1`

// OpenTests gives up tests whose worker died during the call, and returns waiting
// tests; see [testmessage.TestStore].
func (s ChannelTests) OpenTests(ctx context.Context, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `
		with lost as (
			update channel_tests set state = 'done', result = 'unknown', finished_at = clock_timestamp(), recipient = '', draft = null, token = null, lease_until = null
			where id in (select id from channel_tests where state = 'running' and lease_until < clock_timestamp() for update skip locked)
		)
		select id from channel_tests where state = 'waiting' order by id limit $1`, limit)
}
