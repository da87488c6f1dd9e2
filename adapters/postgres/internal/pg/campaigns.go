package pg

// CampaignTemplate is the id of the template that campaign c is about, null if
// there is none; see [campaign.Spec.TemplateID].
const CampaignTemplate = `coalesce(c.grant_template_id,
	case when c.audience ->> 'kind' in ('reserved_template_id', 'holds_template_id') then (c.audience ->> 'id')::bigint end)`
