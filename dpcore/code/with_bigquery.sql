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
