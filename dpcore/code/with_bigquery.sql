{# The statements for every kind of release. Names from outside come quoted, numbers with all their digits. #}
{% macro options(groups=1) %}
  WITH DIFFERENTIAL_PRIVACY OPTIONS(
    epsilon = {{ choice.epsilon }},
    delta = {{ delta }},
    max_groups_contributed = {{ groups }},
    privacy_unit_column = privacy_unit
  )
{%- endmacro %}
{% macro subsample() %}
QUALIFY ROW_NUMBER() OVER (PARTITION BY {{ unit_columns }} ORDER BY RAND()) <= {{ choice.max_rows }};
{%- endmacro %}
{% if released == "MEAN" %}
CREATE TEMP TABLE kept AS
{% if choice.max_rows is not none %}
SELECT {{ unit }} AS privacy_unit, {{ shifted }} AS value
FROM {{ table }}
WHERE {{ has_unit }} AND {{ value }} IS NOT NULL
{{ subsample() }}
{% else %}
SELECT
  privacy_unit,
  LEAST(1.0, {{ choice.threshold }} / COUNT(*)) * SUM(value) AS value,
  LEAST(1.0, {{ choice.threshold }} / COUNT(*)) * COUNT(*) AS weight
FROM (
  SELECT {{ unit }} AS privacy_unit, {{ shifted }} AS value
  FROM {{ table }}
  WHERE {{ has_unit }} AND {{ value }} IS NOT NULL
)
GROUP BY privacy_unit;
{% endif %}

SELECT
{{ options() }}
{% if choice.public_counts %}
  SUM(value, contribution_bounds_per_group => ({{ low }}, {{ high }})) AS total
FROM kept;

-- {{ public_rows }}
SELECT {{ "COUNT(*)" if choice.max_rows is not none else "SUM(weight)" }} AS kept_rows FROM kept;
{% else %}
  SUM(value, contribution_bounds_per_group => ({{ low }}, {{ high }})) AS total,
{% if choice.max_rows is not none %}
  COUNT(*, contribution_bounds_per_group => (0, {{ choice.max_rows }})) AS kept_rows
{% else %}
  SUM(weight, contribution_bounds_per_group => (0.0, {{ choice.threshold }})) AS kept_rows
{% endif %}
FROM kept;
{% endif %}
-- The mean is {% if start %}{{ start }} + {% endif %}total / kept_rows.
{% elif released == "SUM" %}
SELECT
{{ options() }}
  SUM(value, contribution_bounds_per_group => ({{ choice.min_total }}, {{ choice.max_total }})) AS total
FROM (
  SELECT {{ unit }} AS privacy_unit, CAST({{ value }} AS FLOAT64) AS value
  FROM {{ table }}
  WHERE {{ has_unit }}
);
{% elif released == "COUNT" %}
SELECT
{{ options() }}
  COUNT(*, contribution_bounds_per_group => (0, {{ choice.max_rows }})) AS row_count
FROM (
  SELECT {{ unit }} AS privacy_unit
  FROM {{ table }}
  WHERE {{ has_unit }}
);
{% elif choice.max_norm is not none %}
{# GROUP_COUNTS, GROUP_ROWS and GROUP_SUMS with a bound on the norm of each user's vector. #}
{% set power = "POW(amount, 2)" if squared else "amount" %}
{% set bound = "POW(" ~ choice.max_norm ~ ", 2)" if squared else choice.max_norm %}
WITH pairs AS (
  SELECT {{ unit }} AS privacy_unit, {{ group }} AS group_of, {{ amount }} AS amount
  FROM {{ table }}
  WHERE {{ has_unit }} AND {{ group }} IS NOT NULL
  GROUP BY privacy_unit, group_of
),
{% if choice.scaled %}
norms AS (
  SELECT
    group_of,
    amount,
    {{ "SQRT(" if squared }}SUM({{ power }}) OVER (PARTITION BY privacy_unit){{ ")" if squared }} AS norm
  FROM pairs
)
-- No noise yet: these totals are not private.
SELECT group_of, SUM(amount * LEAST(1.0, {{ choice.max_norm }} / NULLIF(norm, 0.0))) AS total
FROM norms
GROUP BY group_of;
{% else %}
ranked AS (
  SELECT
    *,
    SUM({{ power }}) OVER (PARTITION BY privacy_unit ORDER BY amount, group_of) - {{ power }} AS before,
    COUNT(*) OVER (PARTITION BY privacy_unit ORDER BY amount DESC, group_of DESC) AS left_over,
    {{ power }} AS power
  FROM pairs
),
-- The smallest amounts stay whole as long as all others, brought down to the next of them, keep within the norm.
levels AS (
  SELECT
    *,
    FIRST_VALUE(
      IF(
        before + left_over * power > {{ bound }},
        {{ "SQRT(" if squared }}GREATEST({{ bound }} - before, 0.0) / left_over{{ ")" if squared }},
        NULL
      ) IGNORE NULLS
    ) OVER (
      PARTITION BY privacy_unit ORDER BY amount, group_of
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS level
  FROM ranked
)
-- No noise yet: these totals are not private.
SELECT group_of, SUM(LEAST(amount, COALESCE(level, amount))) AS total
FROM levels
GROUP BY group_of;
{% endif %}
{% elif released == "GROUP_ROWS" %}
SELECT
{{ options(choice.max_groups) }}
  group_of,
  COUNT(*, contribution_bounds_per_group => (0, {{ choice.max_rows }})) AS row_count
FROM (
  SELECT {{ unit }} AS privacy_unit, {{ group }} AS group_of
  FROM {{ table }}
  WHERE {{ has_unit }} AND {{ group }} IS NOT NULL
)
GROUP BY group_of;
{% elif released == "GROUP_SUMS" %}
SELECT
{{ options(choice.max_groups) }}
  group_of,
  SUM(value, contribution_bounds_per_group => ({{ choice.min_total }}, {{ choice.max_total }})) AS total
FROM (
  SELECT {{ unit }} AS privacy_unit, {{ group }} AS group_of, CAST({{ value }} AS FLOAT64) AS value
  FROM {{ table }}
  WHERE {{ has_unit }} AND {{ group }} IS NOT NULL
)
GROUP BY group_of;
{% elif released == "GROUP_MEANS" %}
CREATE TEMP TABLE kept AS
SELECT
  {{ unit }} AS privacy_unit,
  {{ group }} AS group_of,
  {{ shifted }} AS value
FROM {{ table }}
WHERE {{ has_unit }} AND {{ group }} IS NOT NULL AND {{ value }} IS NOT NULL
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY {{ unit_columns }}, {{ group }} ORDER BY RAND()) <= {{ choice.max_rows }};

SELECT
{{ options(choice.max_groups) }}
  group_of,
  SUM(value, contribution_bounds_per_group => ({{ low }}, {{ high }})) AS total,
  COUNT(*, contribution_bounds_per_group => (0, {{ choice.max_rows }})) AS kept_rows
FROM kept
GROUP BY group_of;
-- The mean of a group is {% if start %}{{ start }} + {% endif %}total / GREATEST(kept_rows, 1), brought into the range.
{% elif released == "GROUP_COUNTS" %}
SELECT
{{ options(choice.max_groups) }}
  group_of,
  COUNT(*, contribution_bounds_per_group => (0, 1)) AS users
FROM (
  SELECT DISTINCT {{ unit }} AS privacy_unit, {{ group }} AS group_of
  FROM {{ table }}
  WHERE {{ has_unit }} AND {{ group }} IS NOT NULL
)
GROUP BY group_of;
{% elif released == "QUANTILE" %}
CREATE TEMP TABLE kept AS
SELECT {{ unit }} AS privacy_unit, CAST({{ value }} AS FLOAT64) AS value
FROM {{ table }}
WHERE {{ has_unit }} AND {{ value }} IS NOT NULL
{{ subsample() }}

SELECT
{{ options() }}
{% for q in choice.quantiles %}
  PERCENTILE_CONT(value, {{ q }}, contribution_bounds_per_row => ({{ choice.lower }}, {{ choice.upper }})) AS quantile_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
FROM kept;
{% elif released == "MODEL" %}
CREATE TEMP TABLE kept AS
SELECT *
FROM {{ table }}
WHERE {{ has_unit }}
{{ subsample() }}
{% endif %}
