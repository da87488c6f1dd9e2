package campaigns

import (
	"context"

	"dropbell/domain/campaign"
	"dropbell/web/api/pipeline"
)

// recipientsPage is how many recipients a file reads at a time.
const recipientsPage = 5000

// recipientsHead names the columns of the file of recipients.
var recipientsHead = []string{"user_id", "outcome", "reason", "variant", "channel", "at", "attempts", "detail", "next_retry_at", "opened_at", "batch_id",
	"not_before", "not_after", "reported", "cause"}

func (h *handlers) exportRecipients(ctx context.Context, in *struct {
	pipeline.Ref
	RecipientFilter
}) (*pipeline.Stream, error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	q, err2 := in.query()
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	q.Limit = recipientsPage
	by := pipeline.ActorOf(ctx)
	return h.SendRows("campaign-"+pipeline.Decimal(id)+"-recipients.csv", recipientsHead, func(ctx context.Context, row func(...any) error) error {
		return h.Campaigns.EachRecipient(ctx, by, id, q, func(o campaign.Outcome) error {
			return row(int64(o.UserID), string(o.Outcome), o.Reason, groupName(o.Variant), o.Channel.String(), o.At, o.Attempts, o.Detail,
				o.NextRetryAt, o.OpenedAt, o.BatchID, o.NotBefore, o.NotAfter, string(o.Reported), o.Cause)
		})
	}), nil
}
