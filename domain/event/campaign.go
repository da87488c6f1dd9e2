package event

import "time"

// Events of campaigns.
const (
	CampaignPublished = "campaign.published.v1"
	CampaignStarted   = "campaign.started.v1"
	CampaignChanged   = "campaign.changed.v1"
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
