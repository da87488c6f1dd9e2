package pg

// SMSCosts returns an expression for what text messages cost by currency, as JSON of a
// [delivery.SMSCosts]. rows are rows of sms_drop_costs or sms_campaign_costs: what follows "from".
func SMSCosts(rows string) string {
	return `(select coalesce(jsonb_agg(jsonb_build_object('currency', currency, 'parts', parts, 'micros', micros) order by currency collate "C"), '[]')
		from (select currency, sum(parts) as parts, sum(micros) as micros from ` + rows + ` group by currency having sum(parts) > 0) costs)`
}
