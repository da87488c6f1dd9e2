package campaigns

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Start makes a due campaign running; see [campaign.LaunchStore].
func (s Campaigns) Start(ctx context.Context, id int64) (wait time.Duration, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		c, err := scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+`, greatest(c.starts_at - clock_timestamp(), interval '0')`+campaignFrom+
			`where c.id = $1 and c.state = 'scheduled' for update of c`, id), &wait)
		if errors.Is(err, pgx.ErrNoRows) {
			return campaign.ErrNotStartable
		}
		if err != nil || wait > 0 {
			return err
		}
		c.State = campaign.Running
		if _, err := tx.Exec(ctx, `update campaigns set state = 'running', started_at = clock_timestamp(), version = version + 1, updated_at = now()
			where id = $1`, id); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, event.CampaignStarted, c)
	})
	return wait, err
}

// BeginCut takes the right to cut; see [campaign.LaunchStore].
func (s Campaigns) BeginCut(ctx context.Context, id int64, lasting time.Duration) (campaign.Cut, error) {
	cut := campaign.Cut{Token: uuid.NewString()}
	err := s.Tx(ctx, func(tx pgx.Tx) (err error) {
		tag, err := tx.Exec(ctx, `update campaigns set cut_token = $2, cut_lease_until = clock_timestamp() + $3::interval
			where id = $1 and state in ('running', 'paused') and started_at is not null and cut_at is null
				and (cut_token is null or cut_lease_until < clock_timestamp())`, id, cut.Token, lasting)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return campaign.ErrNotStartable
		}
		cut.Campaign, err = scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+`, c.cut_after,
			coalesce((select max(seq) + 1 from campaign_messages m where m.campaign_id = c.id), 0), c.people`+campaignFrom+`where c.id = $1`, id),
			&cut.After, &cut.Seq, &cut.People)
		return err
	})
	return cut, err
}

// KeepCut renews the right to cut; see [campaign.LaunchStore].
func (s Campaigns) KeepCut(ctx context.Context, c campaign.Cut, lasting time.Duration) error {
	return pg.KeepCut(ctx, s.DB, `update campaigns set cut_lease_until = clock_timestamp() + $3::interval
		where id = $1 and cut_token = $2 and cut_at is null and state in ('running', 'paused')`, c.ID, c.Token, lasting)
}

// Encode returns users as a roaring bitmap.
func (s Campaigns) Encode(users []user.ID) ([]byte, error) { return pg.EncodeSet(users) }

// Append stores messages; see [campaign.LaunchStore]. If the campaign was cancelled meanwhile,
// nothing further is cut.
func (s Campaigns) Append(ctx context.Context, c campaign.Cut, ms []campaign.Message) error {
	n, people := len(ms), 0
	seqs, from, to, users := make([]int32, n), make([]int64, n), make([]int64, n), make([]int32, n)
	payloads, strangers := make([][]byte, n), make([][]byte, n)
	for i, m := range ms {
		seqs[i], from[i], to[i], users[i], payloads[i] = int32(m.Seq), int64(m.From), int64(m.To), int32(m.Users), m.Payload
		people += m.Users
		if len(m.Strangers) > 0 {
			var err error
			if strangers[i], err = pg.EncodeSet(m.Strangers); err != nil {
				return err
			}
		}
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update campaigns set cut_lease_until = clock_timestamp() + interval '10 seconds', cut_after = $3, people = people + $4
			where id = $1 and cut_token = $2 and cut_at is null and state in ('running', 'paused')`, c.ID, c.Token, to[n-1], people)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return delivery.ErrLeaseLost
		}
		_, err = tx.Exec(ctx, `insert into campaign_messages (campaign_id, seq, from_user, to_user, users, payload, strangers)
			select $1, * from unnest($2::int[], $3::bigint[], $4::bigint[], $5::int[], $6::bytea[], $7::bytea[])`,
			c.ID, seqs, from, to, users, payloads, strangers)
		return err
	})
}

// Published records that messages are on the wire.
func (s Campaigns) Published(ctx context.Context, ms []campaign.Message) error {
	ids, seqs := make([]int64, len(ms)), make([]int32, len(ms))
	for i, m := range ms {
		ids[i], seqs[i] = m.CampaignID, int32(m.Seq)
	}
	return pg.Translate(killpoint.Around("campaigns.published", func() error {
		_, err := s.Pool.Exec(ctx, `update campaign_messages m set published_at = clock_timestamp()
			from unnest($1::bigint[], $2::int[]) as i (id, seq) where m.campaign_id = i.id and m.seq = i.seq and m.stored_at is null`, ids, seqs)
		return err
	}))
}

// EndCut records that the whole audience is stored.
func (s Campaigns) EndCut(ctx context.Context, c campaign.Cut) error {
	return pg.Translate(killpoint.Around("campaigns.cut", func() error {
		_, err := s.Pool.Exec(ctx, `update campaigns set cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null
			where id = $1 and cut_token = $2 and cut_at is null`, c.ID, c.Token)
		return err
	}))
}

// Fail ends a campaign that cannot go on; its remaining recipients are skipped.
func (s Campaigns) Fail(ctx context.Context, id int64, reason string) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		c, err := scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+campaignFrom+`where c.id = $1 and c.state in ('running', 'paused') for update of c`, id))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		c.State = campaign.Failed
		if _, err := tx.Exec(ctx, `update campaigns set state = 'failed', reason = $2, ended_at = clock_timestamp(), version = version + 1, updated_at = now(),
			cut_token = null, cut_lease_until = null where id = $1`, id, reason); err != nil {
			return err
		}
		if err := stopCampaign(ctx, tx, id, delivery.ReasonCampaignEnded); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, event.CampaignChanged, c)
	})
}

// campaignPriority puts campaigns behind reminders and announcements.
const campaignPriority = 10

// StoreBatches makes batches of a message's ranges; see [campaign.LaunchStore]. It locks the
// campaign's row, so that a concurrent pause or end either finds the batches or is seen by
// StoreBatches.
func (s Campaigns) StoreBatches(ctx context.Context, r event.CampaignRanges) (channel delivery.Channel, err error) {
	n := len(r.Ranges)
	from, to, counts, due := make([]int64, n), make([]int64, n), make([]int32, n), make([][]byte, n)
	for i, one := range r.Ranges {
		set, err := decodeForeignSet(one.Set, one.Users)
		if err != nil || set.IsEmpty() || set.GetCardinality() != uint64(one.Users) ||
			set.Minimum() != uint64(one.From) || set.Maximum() != uint64(one.To) {
			return 0, fault.ErrInvalid.Because("range %d of message %d does not hold what it says", i, r.Seq)
		}
		from[i], to[i], counts[i], due[i] = one.From, one.To, int32(one.Users), one.Set
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var state campaign.State
		var reason string
		err := tx.QueryRow(ctx, `select channel, state, reason from campaigns where id = $1 for share`, r.CampaignID).Scan(&channel, &state, &reason)
		if errors.Is(err, pgx.ErrNoRows) {
			return campaign.ErrNotFound
		}
		if err != nil {
			return err
		}
		var stop *string
		if state == campaign.Cancelled || state == campaign.Failed {
			stop = new(delivery.ReasonCampaignEnded)
			if state == campaign.Cancelled {
				stop = new(delivery.ReasonCampaignCancel)
			}
		}
		// Returns nothing. A message that is stored again meets its own rows.
		_, err = tx.Exec(ctx, `
			insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at,
				worthless_after, stop_reason, priority, held, next_run_at)
			select 'campaign', c.id, coalesce(c.grant_template_id, case when c.audience->>'kind' in ('reserved_template_id', 'holds_template_id')
					then (c.audience->>'id')::bigint end, 0), c.channel, b.from_user, b.to_user, b.n, b.due, c.started_at,
				c.ends_at, @stop, @priority, c.state = 'paused' and c.ends_at > clock_timestamp(), clock_timestamp()
			from campaigns c, unnest(@from_users::bigint[], @to_users::bigint[], @due_counts::int[], @dues::bytea[])
				with ordinality as b (from_user, to_user, n, due, i)
			where c.id = @campaign order by b.i
			on conflict (kind, owner_id, channel, from_user) do nothing`, pgx.StrictNamedArgs{"campaign": r.CampaignID, "from_users": from, "to_users": to, "due_counts": counts,
			"dues": due, "stop": stop, "priority": campaignPriority})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update campaign_messages set stored_at = clock_timestamp(), payload = null
			where campaign_id = $1 and seq = $2 and stored_at is null`, r.CampaignID, r.Seq)
		return err
	})
	return channel, err
}

// decodeForeignSet decodes a set of at most users users from untrusted bytes. The library
// allocates memory for the number of containers that the header claims, and panics if that
// number is absurd, so the number is checked first. No container is empty.
func decodeForeignSet(b []byte, users int) (*roaring64.Bitmap, error) {
	if len(b) < 8 || users <= 0 || binary.LittleEndian.Uint64(b) > uint64(users) {
		return nil, errors.New("not a set of so many users")
	}
	return pg.DecodeSet(b)
}

// Due returns campaigns that should have started, and abandoned cuts.
func (s Campaigns) Due(ctx context.Context, grace time.Duration, limit int) (start, cut []int64, err error) {
	for _, q := range []struct {
		into *[]int64
		sql  string
	}{
		{&start, `select id from campaigns where state = 'scheduled' and starts_at < statement_timestamp() - $1::interval order by starts_at limit $2`},
		{&cut, `select id from campaigns where state in ('running', 'paused') and settled_at is null and cut_at is null
			and started_at < clock_timestamp() - $1::interval
			and (cut_token is null or cut_lease_until < clock_timestamp()) order by id limit $2`},
	} {
		rows, err := s.Pool.Query(ctx, q.sql, grace, limit)
		if err != nil {
			return nil, nil, pg.Translate(err)
		}
		if *q.into, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return nil, nil, pg.Translate(err)
		}
	}
	return start, cut, nil
}

// Unstored returns messages that have not become batches in time. Messages that two concurrent
// sweeps return are published twice, which does no harm.
func (s Campaigns) Unstored(ctx context.Context, grace time.Duration, limit int) ([]campaign.Message, error) {
	rows, err := s.Pool.Query(ctx, `
		select m.campaign_id, m.seq, m.from_user, m.to_user, m.users, m.payload from campaign_messages m join campaigns c on c.id = m.campaign_id
		where m.stored_at is null and coalesce(m.published_at, c.started_at) < clock_timestamp() - $1::interval
			-- The worker that is cutting publishes the messages itself.
			and (m.published_at is not null or c.cut_at is not null or c.cut_lease_until is null or c.cut_lease_until < clock_timestamp())
		order by m.campaign_id, m.seq limit $2`, grace, limit)
	if err != nil {
		return nil, pg.Translate(err)
	}
	var list []campaign.Message
	var m campaign.Message
	_, err = pgx.ForEachRow(rows, []any{&m.CampaignID, &m.Seq, &m.From, &m.To, &m.Users, &m.Payload}, func() error {
		m.Payload = json.RawMessage(slices.Clone(m.Payload))
		list = append(list, m)
		return nil
	})
	return list, pg.Translate(err)
}
