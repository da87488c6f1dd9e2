package campaigns

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// leftRanges is the payload of a message that version 0.1.0 stored without batches.
type leftRanges struct {
	CampaignID int64       `json:"campaign_id,string"`
	Seq        int         `json:"seq"`
	Ranges     []leftRange `json:"ranges"`
}

// A leftRange is a set of users; From and To are the first and the last.
type leftRange struct {
	From  int64 `json:"from,string"`
	To    int64 `json:"to,string"`
	Users int   `json:"users"`
	// Set is a roaring bitmap (64 bit, portable format) of the user ids.
	Set []byte `json:"set"`
}

// StoreLeft makes batches of messages that version 0.1.0 left; see [campaign.LaunchStore]. Two
// concurrent sweeps may store a message twice, which makes one batch of each range.
func (s Campaigns) StoreLeft(ctx context.Context, grace time.Duration, limit int) (channels []delivery.Channel, err error) {
	rows := pg.Rows(ctx, s.Pool, `
		select m.payload from campaign_messages m join campaigns c on c.id = m.campaign_id
		where m.stored_at is null and coalesce(m.published_at, c.started_at) < clock_timestamp() - $1::interval
			-- A worker that is cutting publishes the messages itself.
			and (m.published_at is not null or c.cut_at is not null or c.cut_lease_until is null or c.cut_lease_until < clock_timestamp())
		order by m.campaign_id, m.seq limit $2`, grace, limit)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, pg.Translate(err)
	}
	for _, payload := range payloads {
		c, err := s.storeLeft(ctx, payload)
		if err != nil {
			return channels, err
		}
		channels = append(channels, c)
	}
	slices.Sort(channels)
	return slices.Compact(channels), nil
}

// storeLeftSQL locks the campaign's row, so that a concurrent pause or end either finds the
// batches or is seen here.
const storeLeftSQL = `
with c as (
	select * from campaigns where id = @campaign for share
), stored as (
	update campaign_messages set stored_at = clock_timestamp(), payload = null
	where campaign_id = @campaign and seq = @seq and stored_at is null
), batched as (` + storeBatchesSQL + `)
select channel from c`

// storeLeft stores the batches of one message and returns the channel of its campaign.
func (s Campaigns) storeLeft(ctx context.Context, payload []byte) (c delivery.Channel, err error) {
	var m leftRanges
	if err := json.Unmarshal(payload, &m); err != nil {
		return 0, fault.ErrInvalid.Because("a message of a campaign is not readable: %v", err)
	}
	ranges := make([]campaign.Range, len(m.Ranges))
	for i, r := range m.Ranges {
		set, err := decodeForeignSet(r.Set, r.Users)
		if err != nil || set.IsEmpty() || set.GetCardinality() != uint64(r.Users) || set.Minimum() != uint64(r.From) || set.Maximum() != uint64(r.To) {
			return 0, fault.ErrInvalid.Because("range %d of message %d does not hold what it says", i, m.Seq)
		}
		ranges[i] = campaign.Range{From: user.ID(r.From), To: user.ID(r.To), Users: r.Users, Set: r.Set}
	}
	args := batchArgs(m.CampaignID, ranges)
	args["seq"] = m.Seq
	err = s.Pool.QueryRow(ctx, storeLeftSQL, args).Scan(&c)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, campaign.ErrNotFound
	}
	return c, pg.Translate(err)
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
