package event

import "time"

// Events of campaigns.
const (
	CampaignPublished = "campaign.published.v1"
	CampaignStarted   = "campaign.started.v1"
	CampaignChanged   = "campaign.changed.v1"
	CampaignRangesCut = "campaign.ranges.v1"
)

// Campaign is the payload of [CampaignPublished], [CampaignStarted] and
// [CampaignChanged]: the campaign's id, its state after the change, and when it
// starts or started. Readers load all other fields.
type Campaign struct {
	CampaignID int64     `json:"campaign_id,string"`
	State      string    `json:"state"`
	StartsAt   time.Time `json:"starts_at"`
	At         time.Time `json:"at"`
}

// CampaignRanges is the payload of [CampaignRangesCut]: ranges of a campaign's
// audience that are to become batches. It is at most 800 KiB and 100 ranges; Seq
// numbers the messages of one campaign.
type CampaignRanges struct {
	CampaignID int64           `json:"campaign_id,string"`
	Seq        int             `json:"seq"`
	Ranges     []CampaignRange `json:"ranges"`
}

// CampaignRange is a set of users, From and To being the first and the last.
type CampaignRange struct {
	From  int64 `json:"from,string"`
	To    int64 `json:"to,string"`
	Users int   `json:"users"`
	// Set is a roaring bitmap (64 bit, portable format) of the user ids.
	Set []byte `json:"set"`
}
